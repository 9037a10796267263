package crd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
)

// wireDefinition is the JSON form of a CustomResourceDefinition. V is the form of its versions.
type wireDefinition[V any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string    `json:"name"`
		UID               types.UID `json:"uid,omitempty"`
		ResourceVersion   string    `json:"resourceVersion,omitempty"`
		Generation        int64     `json:"generation,omitempty"`
		DeletionTimestamp string    `json:"deletionTimestamp,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Group      string `json:"group"`
		Names      Names  `json:"names"`
		Scope      string `json:"scope"`
		Versions   []V    `json:"versions"`
		Conversion struct {
			Strategy string `json:"strategy,omitempty"`
		} `json:"conversion,omitempty"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions,omitempty"`
		AcceptedNames  Names    `json:"acceptedNames,omitempty"`
		StoredVersions []string `json:"storedVersions,omitempty"`
	} `json:"status,omitempty"`
}

// wireVersion contains the fields of a version that a Tracker needs.
type wireVersion struct {
	Name               string         `json:"name"`
	Served             bool           `json:"served"`
	Storage            bool           `json:"storage"`
	Deprecated         bool           `json:"deprecated,omitempty"`
	DeprecationWarning string         `json:"deprecationWarning,omitempty"`
	Subresources       map[string]any `json:"subresources,omitempty"`
}

// wireFullVersion is a version with its schema, printer columns and selectable fields.
type wireFullVersion struct {
	wireVersion `json:",inline"`
	Schema      struct {
		OpenAPIV3Schema *Schema `json:"openAPIV3Schema,omitempty"`
	} `json:"schema,omitempty"`
	Columns          []Column `json:"additionalPrinterColumns,omitempty"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields,omitempty"`
}

// ErrNotCRD is the error for an object of another kind or version.
var ErrNotCRD = errors.New("not a CustomResourceDefinition of apiextensions.k8s.io/v1")

// Decode decodes one definition, with schemas, from JSON.
func Decode(data []byte) (*Definition, error) {
	var w wireDefinition[wireFullVersion]
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	return convertDefinition(&w, wireFullVersion.version)
}

// FromUnstructured converts a decoded object, such as unstructured.Unstructured.Object, with schemas. It
// neither changes nor retains the object.
func FromUnstructured(object map[string]any) (*Definition, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode CustomResourceDefinition: %w", err)
	}
	return Decode(data)
}

// Summary is FromUnstructured without schemas, columns and selectable fields, which are the largest parts of
// a CRD. The result shares only strings with the object.
func Summary(object map[string]any) (*Definition, error) {
	var w wireDefinition[wireVersion]
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	return convertDefinition(&w, wireVersion.version)
}

func convertDefinition[V any](wire *wireDefinition[V], convert func(V) Version) (*Definition, error) {
	if wire.APIVersion != GVR.GroupVersion().String() || wire.Kind != "CustomResourceDefinition" {
		return nil, fmt.Errorf("%w: it is %q of %q", ErrNotCRD, wire.Kind, wire.APIVersion)
	}
	d := &Definition{
		Name: wire.Metadata.Name, UID: wire.Metadata.UID, ResourceVersion: wire.Metadata.ResourceVersion,
		Generation: wire.Metadata.Generation, Deleting: wire.Metadata.DeletionTimestamp != "",
		Group: wire.Spec.Group, Names: wire.Spec.Names, Namespaced: wire.Spec.Scope == "Namespaced",
		StoredVersions: wire.Status.StoredVersions, ConversionWebhook: wire.Spec.Conversion.Strategy == "Webhook",
		Versions: naming.Map(wire.Spec.Versions, convert),
	}
	if accepted := wire.Status.AcceptedNames; accepted.Plural != "" && accepted.Kind != "" {
		d.Names = accepted
	}
	for _, c := range wire.Status.Conditions {
		isTrue := c.Status == "True"
		switch c.Type {
		case "Established":
			d.Established = isTrue
		case "NamesAccepted":
			d.NamesAccepted = isTrue
		case "Terminating":
			d.Terminating = isTrue
		}
	}
	if err := d.validate(wire.Spec.Scope); err != nil {
		return nil, err
	}
	return d, nil
}

// validate returns an error for definitions that have no name or cannot be served. API servers never store
// them, but files may contain them.
func (d *Definition) validate(scope string) error {
	var problems []error
	addMissing := func(field string) {
		problems = append(problems, fmt.Errorf("%s is missing", field))
	}
	if d.Group == "" {
		addMissing("spec.group")
	}
	if d.Names.Plural == "" {
		addMissing("spec.names.plural")
	}
	if d.Names.Kind == "" {
		addMissing("spec.names.kind")
	}
	if scope != "Namespaced" && scope != "Cluster" {
		problems = append(problems, fmt.Errorf("spec.scope is %q, want Namespaced or Cluster", scope))
	}
	if len(d.Versions) == 0 {
		addMissing("spec.versions")
	}
	seenVersions := map[string]bool{}
	for i, v := range d.Versions {
		if v.Name == "" {
			addMissing(fmt.Sprintf("spec.versions[%d].name", i))
		}
		if seenVersions[v.Name] {
			problems = append(problems, fmt.Errorf("spec.versions has %q twice", v.Name))
		}
		seenVersions[v.Name] = true
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("CustomResourceDefinition %q: %w", d.Name, errors.Join(problems...))
}

func (v wireVersion) version() Version {
	out := Version{
		Name: v.Name, Served: v.Served, Storage: v.Storage,
		Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning,
	}
	for name, value := range v.Subresources {
		if value != nil {
			out.Subresources = append(out.Subresources, name)
		}
	}
	slices.Sort(out.Subresources)
	return out
}

func (v wireFullVersion) version() Version {
	out := v.wireVersion.version()
	out.Schema, out.Columns = v.Schema.OpenAPIV3Schema, v.Columns
	for _, f := range v.SelectableFields {
		out.SelectableFields = append(out.SelectableFields, f.JSONPath)
	}
	return out
}

// ErrNoDefinitions is the error for a file without any definition.
var ErrNoDefinitions = errors.New("no CustomResourceDefinition found")

// Fetch gets one definition, with schemas, from a cluster.
func Fetch(ctx context.Context, client dynamic.Interface, gr schema.GroupResource) (*Definition, error) {
	object, err := client.Resource(GVR).Get(ctx, gr.String(), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get CustomResourceDefinition %s: %w", gr, err)
	}
	return FromUnstructured(object.Object)
}

// ReadFile calls Read with the file at path.
func ReadFile(path string) ([]*Definition, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, path)
}

// Read returns the definitions in YAML or JSON. The text may be compressed with gzip or zstd, and have any
// number of documents, each an object or a List of objects. Read ignores other objects; a definition of the
// removed v1beta1 is an error. It returns all readable definitions together with the joined errors: one for
// each invalid object, with the file, the line and the document, and the error of reading r. If there is
// neither a definition nor an error, it returns ErrNoDefinitions.
func Read(r io.Reader, file string) ([]*Definition, error) {
	var out []*Definition
	var problems []error
	err := manifest.Read(context.Background(), r, func(e manifest.Entry) bool {
		d, err := readEntry(e)
		if d != nil {
			out = append(out, d)
		}
		if err != nil {
			problems = append(problems, &manifest.Problem{File: file, Position: e.Position, Err: err})
		}
		return true
	})
	if err != nil {
		problems = append(problems, fmt.Errorf("%s: %w", file, err))
	}
	if len(out) == 0 && len(problems) == 0 {
		return nil, fmt.Errorf("%s: %w", file, ErrNoDefinitions)
	}
	return out, errors.Join(problems...)
}

// readEntry returns the definition of an entry, or nil for another object.
func readEntry(e manifest.Entry) (*Definition, error) {
	switch {
	case errors.Is(e.Err, manifest.ErrNoKind), errors.Is(e.Err, manifest.ErrNotRead), e.Err == nil &&
		e.Kind != "CustomResourceDefinition":
		return nil, nil
	case e.Err != nil:
		return nil, e.Err
	case e.APIVersion == "apiextensions.k8s.io/v1beta1":
		return nil, fmt.Errorf("%w: v1beta1 was removed in Kubernetes 1.22, convert it to v1", ErrNotCRD)
	}
	var w wireDefinition[wireFullVersion]
	if err := json.Unmarshal(e.Data, &w); err != nil {
		return nil, fmt.Errorf("decode CustomResourceDefinition: %w", err)
	}
	w.APIVersion, w.Kind = e.APIVersion, e.Kind
	return convertDefinition(&w, wireFullVersion.version)
}
