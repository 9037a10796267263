package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/serving/readapi"
)

// object is one state of a stored object. It is immutable.
type object struct {
	// key is "namespace/name", or the name alone.
	key string
	// version is the name of the version in which the object is stored.
	version string
	labels  labelSet
	// body is the object as JSON with sorted keys and without apiVersion. It is nil if the text is in a
	// block.
	body []byte
	blockText
}

var _ readapi.Object = (*object)(nil)

// objectOrNil converts a nil *object to a nil Object.
func objectOrNil(o *object) readapi.Object {
	if o == nil {
		return nil
	}
	return o
}

func (o *object) Key() string           { return o.key }
func (o *object) Version() string       { return o.version }
func (o *object) Labels() labels.Labels { return o.labels }

func (o *object) JSON() ([]byte, error) {
	if o.block == nil {
		return o.body, nil
	}
	return o.block.appendText(make([]byte, 0, o.length), o.offset, o.length)
}

func (o *object) AppendJSON(dst []byte, apiVersion string) ([]byte, error) {
	dst = append(append(dst, `{"apiVersion":`...), apiVersion...)
	dst = append(dst, ',')
	if o.block == nil {
		return append(dst, o.body[1:]...), nil
	}
	return o.block.appendText(dst, o.offset+1, o.length-1) // without its brace
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

// labelSet holds labels in a fifth of the memory of a map: alternating keys and values in the order of keys,
// each after its length.
type labelSet string

var _ labels.Labels = labelSet("")

func newLabelSet(from map[string]string) labelSet {
	var set []byte
	for _, key := range slices.Sorted(maps.Keys(from)) {
		set = appendLabel(appendLabel(set, key), from[key])
	}
	return labelSet(set)
}

func appendLabel[T string | []byte](set []byte, text T) []byte {
	return append(binary.AppendUvarint(set, uint64(len(text))), text...)
}

// next splits off the first key or value.
func (s labelSet) next() (text string, rest labelSet) {
	size, at, shift := 0, 0, 0
	for ; s[at] >= 0x80; at++ {
		size |= int(s[at]&0x7f) << shift
		shift += 7
	}
	size |= int(s[at]) << shift
	at++
	return string(s[at : at+size]), s[at+size:]
}

func (s labelSet) Has(key string) bool   { _, ok := s.Lookup(key); return ok }
func (s labelSet) Get(key string) string { value, _ := s.Lookup(key); return value }

func (s labelSet) Lookup(key string) (string, bool) {
	for len(s) > 0 {
		var name, value string
		name, s = s.next()
		value, s = s.next()
		if name == key {
			return value, true
		}
	}
	return "", false
}
