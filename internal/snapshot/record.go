package snapshot

import (
	"bytes"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/packed"
)

// Record is an object in a file.
type Record struct {
	// Key is "namespace/name", or the name of a cluster-scoped object.
	Key string
	// JSON is the object as it was saved. It is valid until the next record is read, and must not be changed.
	JSON []byte
	// Position is the position of the record in the order in which the type was written, from 0.
	Position int
	// Version is the version in which the object was saved.
	Version string
	Labels  labels.Labels
}

// AppendWith appends the object's JSON with another apiVersion, which is JSON.
func (r Record) AppendWith(dst []byte, apiVersion string) []byte {
	for m, err := range jsontext.Members(r.JSON) {
		if err != nil {
			break
		}
		if string(m.Key) == "apiVersion" {
			dst = append(append(dst, r.JSON[:m.End-len(m.Value)]...), apiVersion...)
			return append(dst, r.JSON[m.End:]...)
		}
	}
	return append(dst, r.JSON...)
}

var errNoObject = errors.New("not a JSON object")

// pack packs an object's JSON. It adds a missing apiVersion and kind, as in lists of built-in types.
func pack(object []byte, apiVersion, kind string) (*packed.Object, error) {
	object = bytes.TrimSpace(object)
	o, end, _ := (*packed.Packer)(nil).TryItem(object, 0, apiVersion, kind)
	if o == nil || end != len(object) {
		u := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(object, &u.Object); err != nil || u.Object == nil {
			return nil, errNoObject
		}
		if u.GetAPIVersion() == "" {
			u.SetAPIVersion(apiVersion)
		}
		if u.GetKind() == "" {
			u.SetKind(kind)
		}
		var err error
		if o, err = (*packed.Packer)(nil).FromUnstructured(u); err != nil {
			return nil, err
		}
	}
	if _, hasJSON := o.JSON(); !hasJSON {
		return nil, errNoObject
	}
	return o, nil
}
