package readapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/pattern"
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
	// is asked for. It has a kind, so that it is never empty. It is nil where the text is in block, at offset
	// at.
	body []byte
	packed
}

// packed is text in a block.
type packed struct {
	block      *block
	at, length uint32
}

var _ Object = (*object)(nil)

// asObject is an object that may be nil as an Object that then is nil, too.
func asObject(o *object) Object {
	if o == nil {
		return nil
	}
	return o
}

// Key implements Object.
func (o *object) Key() string { return o.key }

// Version implements Object.
func (o *object) Version() string { return o.stored }

// Labels implements Object.
func (o *object) Labels() labels.Labels { return o.labels }

// JSON implements Object.
func (o *object) JSON() ([]byte, error) {
	if o.block == nil {
		return o.body, nil
	}
	return o.block.appendText(make([]byte, 0, o.length), o.at, o.length)
}

// AppendJSON implements Object.
func (o *object) AppendJSON(dst []byte, apiVersion string) ([]byte, error) {
	dst = append(dst, `{"apiVersion":`...)
	dst = append(dst, apiVersion...)
	dst = append(dst, ',')
	if o.block == nil {
		return append(dst, o.body[1:]...), nil
	}
	return o.block.appendText(dst, o.at+1, o.length-1) // without its brace
}

// splitKey returns namespace and name of a key.
func splitKey(key string) (namespace, name string) {
	at := strings.IndexByte(key, '/')
	if at < 0 {
		return "", key
	}
	return key[:at], key[at+1:]
}

// objectKey returns the store key of an object, or "" if no object can have the name.
func objectKey(namespace, name string) string {
	key, _ := pattern.Key(cache.NewObjectName(namespace, name))
	return key
}

// decode returns an object, with any apiVersion or none.
func decode(o Object) (map[string]any, error) {
	data, err := o.JSON()
	var content map[string]any
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", o.Key(), err)
	}
	return content, nil
}

// withVersion returns an object with another resource version: that of its deletion.
func withVersion(o Object, version uint64) (Object, error) {
	content, err := decode(o)
	if err != nil {
		return nil, err
	}
	(&unstructured.Unstructured{Object: content}).SetResourceVersion(strconv.FormatUint(version, 10))
	body, err := encodeBody(content)
	return &object{key: o.Key(), version: version, stored: o.Version(), body: body}, err
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
