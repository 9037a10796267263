package readapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

type encoder struct {
	resource      *resource
	form          answerForm
	apiVersion    string // a JSON string
	includeObject string
	table         *tabulator // set if the form is a table
}

func newEncoder(r *http.Request, res *resource) (*encoder, error) {
	form, err := negotiate(r.Header)
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(res.gv.String())
	return &encoder{resource: res, form: form, apiVersion: string(quoted),
		includeObject: r.URL.Query().Get("includeObject")}, err
}

// prepare returns an error if the objects cannot be encoded. Like a kube-apiserver, the handler calls it
// after all other checks.
func (e *encoder) prepare(list bool, objects ...Object) error {
	switch {
	case e.form.kind == partialObject && list:
		return NewStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
			"you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)")
	case e.form.kind == partialList && !list:
		return errInternal("content is not a list")
	case e.form.kind == tableForm:
		if err := e.initTable(); err != nil {
			return err
		}
	}
	return e.checkConversion(objects...)
}

// checkConversion returns an error for objects that need a conversion webhook.
func (e *encoder) checkConversion(objects ...Object) error {
	if !e.resource.typ.NeedsConversion {
		return nil
	}
	for _, o := range objects {
		if o.Version() != e.resource.gv.Version {
			return apierrors.NewInternalError(
				fmt.Errorf("conversion webhook for %s, Kind=%s failed: %s is in %s and there is no webhook to ask; ask for that version",
					e.resource.gv, e.resource.typ.Names.Kind, o.Key(), o.Version()))
		}
	}
	return nil
}

// appendListItem is appendItem for objects with a different form in lists.
func (e *encoder) appendListItem(dst []byte, o Object) ([]byte, error) {
	if item, differs := o.(ListItem); differs && e.form.kind == wholeObject {
		return item.AppendItem(dst)
	}
	return e.appendItem(dst, o)
}

// appendItem appends an object, or its row in a table.
func (e *encoder) appendItem(dst []byte, o Object) ([]byte, error) {
	apiVersion, mustPrune := e.resource.gv, false
	switch {
	case o.Version() == apiVersion.Version:
	case e.resource.typ.ServesUnconverted:
		apiVersion.Version = o.Version()
	default:
		mustPrune = e.resource.version.parsedSchema != nil
	}
	switch {
	case e.form.kind != wholeObject || mustPrune:
	case apiVersion == e.resource.gv:
		return o.AppendJSON(dst, e.apiVersion)
	default:
		return o.AppendJSON(dst, strconv.Quote(apiVersion.String()))
	}
	if e.form.kind == partialObject || e.form.kind == partialList {
		m, err := partialMetadataOf(o)
		if err != nil {
			return nil, err
		}
		m.APIVersion = e.form.version
		return appendValue(dst, m)
	}
	content, err := Decode(o)
	if err != nil {
		return nil, err
	}
	if mustPrune {
		// drop the fields that the requested version does not have
		prune(content, e.resource.version.parsedSchema)
	}
	content["apiVersion"] = apiVersion.String()
	if e.form.kind == tableForm {
		return e.table.appendRow(dst, content)
	}
	return appendValue(dst, content)
}

// appendObject appends a single object, or a table with one row.
func (e *encoder) appendObject(dst []byte, o Object) ([]byte, error) {
	if e.form.kind != tableForm {
		return e.appendItem(dst, o)
	}
	dst, err := e.appendHead(dst, listMeta{ListMeta: metav1.ListMeta{ResourceVersion: resourceVersionOf(o)}})
	if err != nil {
		return nil, err
	}
	if dst, err = e.appendItem(dst, o); err != nil {
		return nil, err
	}
	return append(dst, "]}"...), nil
}

func (e *encoder) appendHead(dst []byte, m listMeta) ([]byte, error) {
	switch e.form.kind {
	case wholeObject:
		dst = append(dst, `{"apiVersion":`...)
		dst = append(dst, e.apiVersion...)
		return append(dst, `,"items":[`...), nil
	case tableForm:
		return e.table.appendHead(dst, m)
	}
	dst = append(append(dst, `{"kind":"PartialObjectMetadataList","apiVersion":"`...), e.form.version...)
	dst = append(dst, `","metadata":`...)
	dst, err := appendValue(dst, m)
	return append(dst, `,"items":[`...), err
}

func (e *encoder) appendTail(dst []byte, m listMeta) ([]byte, error) {
	if e.form.kind != wholeObject {
		return append(dst, "]}"...), nil
	}
	dst = append(dst, `],"kind":`...)
	dst, err := appendValue(dst, e.resource.typ.Names.ListKind)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"metadata":`...)
	if !e.resource.typ.Custom {
		dst, err = appendValue(dst, m)
		return append(dst, '}'), err
	}
	// Lists of custom resources always have "continue".
	dst, err = appendValue(dst, struct {
		Continue  string     `json:"continue"`
		Remaining *int64     `json:"remainingItemCount,omitempty"`
		Version   string     `json:"resourceVersion"`
		Shard     *shardInfo `json:"shardInfo,omitempty"`
	}{m.Continue, m.RemainingItemCount, m.ResourceVersion, m.ShardInfo})
	return append(dst, '}'), err
}

// bookmark returns an object with only a resource version and annotations.
func (e *encoder) bookmark(version uint64, annotations map[string]string) (Object, error) {
	metadata := map[string]any{"resourceVersion": fmt.Sprint(version)}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	body, err := json.Marshal(map[string]any{"kind": e.resource.typ.Names.Kind, "metadata": metadata})
	return &renderedObject{version: e.resource.gv.Version, body: body}, err
}

// partialObjectMetadata returns the metadata of an object, or an error if it does not fit into ObjectMeta.
func partialObjectMetadata(content map[string]any) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{}
	metadata := map[string]any{"metadata": content["metadata"]}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, m); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	m.TypeMeta = partialType
	return m, nil
}

var metadataPath = jsonpath.FromSegments("metadata")

// partialMetadataOf is partialObjectMetadata without decoding the whole object.
func partialMetadataOf(o Object) (*metav1.PartialObjectMetadata, error) {
	m := &metav1.PartialObjectMetadata{TypeMeta: partialType}
	body, err := o.JSON()
	if err != nil {
		return nil, err
	}
	metadata, ok, err := metadataPath.FirstJSON(body)
	if err == nil && ok {
		err = utiljson.Unmarshal(metadata.Raw(), &m.ObjectMeta)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", o.Key(), err)
	}
	return m, nil
}

var partialType = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}

func appendValue(dst []byte, value any) ([]byte, error) {
	data, err := json.Marshal(value)
	return append(dst, data...), err
}
