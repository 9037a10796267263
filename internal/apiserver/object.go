package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/s2"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/serving/readapi"
)

// object is one state of a stored object. It is immutable.
type object struct {
	// key is "namespace/name", or the name alone.
	key string
	// version is the name of the version in which the object is stored.
	version string
	// body is the object as JSON with sorted keys and without apiVersion. If size is set, body is compressed,
	// and size is that of the JSON.
	body []byte
	size int
}

// objectOrNil converts a nil *object to a nil Object.
func objectOrNil(o *object) readapi.Object {
	if o == nil {
		return nil
	}
	return o
}

func (o *object) Key() string     { return o.key }
func (o *object) Version() string { return o.version }

// Labels reads the labels from the JSON, because few requests need them.
func (o *object) Labels() labels.Labels {
	var metadata struct {
		Labels labels.Set `json:"labels"`
	}
	text, err := o.JSON()
	for m := range jsontext.Members(text) {
		if err == nil && string(m.Key) == "metadata" {
			_ = utiljson.Unmarshal(m.Value, &metadata) // it was valid when it was stored
		}
	}
	return metadata.Labels
}

func (o *object) JSON() ([]byte, error) {
	if o.size == 0 {
		return o.body, nil
	}
	return s2.Decode(make([]byte, o.size), o.body)
}

func (o *object) AppendJSON(dst []byte, apiVersion string) ([]byte, error) {
	dst = append(append(dst, `{"apiVersion":`...), apiVersion...)
	at := len(dst)
	if o.size == 0 {
		dst = append(dst, o.body...)
	} else {
		dst = append(dst, make([]byte, o.size)...)
		if _, err := s2.Decode(dst[at:], o.body); err != nil {
			return dst[:at], fmt.Errorf("decompress %s: %w", o.key, err)
		}
	}
	dst[at] = ',' // instead of the brace
	return dst, nil
}

// encodeBody returns the JSON of an object without its apiVersion.
func encodeBody(content map[string]any) ([]byte, error) {
	if apiVersion, ok := content["apiVersion"]; ok {
		delete(content, "apiVersion")
		defer func() { content["apiVersion"] = apiVersion }()
	}
	body, err := json.Marshal(content)
	// The copy has the right size: the result of Marshal can have a capacity of twice its length.
	return bytes.Clone(body), err
}
