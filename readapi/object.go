package readapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// object is one stored state of an object. It never changes.
type object struct {
	// key is "namespace/name", or the name alone. Its order is that of lists.
	key string
	// version is the resource version of the storage that this state came with.
	version uint64
	// stored is the name of the version that the object was written in.
	stored string
	labels labelSet
	// body is the object in JSON with sorted keys and without apiVersion, which depends on the version that
	// is asked for. It has a kind, so that it is never empty.
	body []byte
}

func (o *object) namespace() string {
	namespace, _, ok := strings.Cut(o.key, "/")
	if !ok {
		return ""
	}
	return namespace
}

func (o *object) name() string { return o.key[strings.IndexByte(o.key, '/')+1:] }

// objectKey is the key of an object.
func objectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// appendJSON appends the object as apiVersion, which is a group and version in JSON with its quotes.
func (o *object) appendJSON(dst []byte, apiVersion string) []byte {
	dst = append(dst, `{"apiVersion":`...)
	dst = append(dst, apiVersion...)
	dst = append(dst, ',')
	return append(dst, o.body[1:]...)
}

// decode returns the object without its apiVersion.
func (o *object) decode() (map[string]any, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(o.body, &content); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.key, err)
	}
	return content, nil
}

// as returns the object with another resource version: that of its deletion.
func (o *object) as(version uint64) (*object, error) {
	content, err := o.decode()
	if err != nil {
		return nil, err
	}
	(&unstructured.Unstructured{Object: content}).SetResourceVersion(strconv.FormatUint(version, 10))
	changed := *o
	changed.version = version
	changed.body, err = encodeBody(content)
	return &changed, err
}

// encodeBody returns the JSON of an object without its apiVersion, which content may have.
func encodeBody(content map[string]any) ([]byte, error) {
	if apiVersion, ok := content["apiVersion"]; ok {
		delete(content, "apiVersion")
		defer func() { content["apiVersion"] = apiVersion }()
	}
	body, err := json.Marshal(content)
	// A copy of the right size: what Marshal returns may have room for twice as much.
	return bytes.Clone(body), err
}
