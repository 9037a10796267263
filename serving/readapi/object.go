package readapi

import (
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// renderedObject is an Object that the handler creates itself: a bookmark, or the last state of a deleted
// object.
type renderedObject struct {
	key, version string
	body         []byte // without apiVersion, and never empty
}

func (o *renderedObject) Key() string           { return o.key }
func (o *renderedObject) Version() string       { return o.version }
func (o *renderedObject) Labels() labels.Labels { return labels.Set(nil) }
func (o *renderedObject) JSON() ([]byte, error) { return o.body, nil }

func (o *renderedObject) AppendJSON(dst []byte, apiVersion string) ([]byte, error) {
	dst = append(append(dst, `{"apiVersion":`...), apiVersion...)
	return append(append(dst, ','), o.body[1:]...), nil
}

// Decode returns the content of an object. Its apiVersion can be any or missing.
func Decode(o Object) (map[string]any, error) {
	data, err := o.JSON()
	var content map[string]any
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", o.Key(), err)
	}
	return content, nil
}

// withVersion returns an object with another resource version: the one of its deletion.
func withVersion(o Object, version uint64) (Object, error) {
	content, err := Decode(o)
	if err != nil {
		return nil, err
	}
	delete(content, "apiVersion")
	(&unstructured.Unstructured{Object: content}).SetResourceVersion(strconv.FormatUint(version, 10))
	body, err := json.Marshal(content)
	return &renderedObject{key: o.Key(), version: o.Version(), body: body}, err
}
