package live

import (
	"bytes"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/readapi"
)

// object is an object of the informer's cache. The zero value means no object.
type object struct {
	key     string // can be a part of stored
	stored  dynamicinformer.PackedObject
	version string // "v1"
	// isCustom objects are written unchanged. A kube-apiserver writes kind and apiVersion of built-in types
	// in another order, or not at all.
	isCustom bool
}

var (
	_ readapi.ListItem      = object{}
	_ readapi.ObjectWithUID = object{}
)

// object converts a cached object. It returns the zero value for nil.
func (c *collection) object(key string, stored any) object {
	if o, ok := stored.(dynamicinformer.PackedObject); ok {
		return object{key, o, c.gvr.Version, c.typ.Custom}
	}
	return object{}
}

// objectOrNil converts a cached object like object, but returns nil for nil.
func (c *collection) objectOrNil(key string, stored any) readapi.Object {
	if o := c.object(key, stored); o != (object{}) {
		return o
	}
	return nil
}

func (o object) Key() string     { return o.key }
func (o object) Version() string { return o.version }

func (o object) GetUID() types.UID {
	if m, ok := o.stored.(metav1.Object); ok {
		return m.GetUID()
	}
	return ""
}

func (o object) Labels() labels.Labels { return o.stored.Labels() }

func (o object) JSON() ([]byte, error) {
	var out []byte
	err := o.readJSON(func(text []byte) { out = bytes.Clone(text) })
	return out, err
}

// AppendJSON implements readapi.Object. It ignores the requested API version: a type is served only in the
// cached version.
func (o object) AppendJSON(dst []byte, _ string) ([]byte, error) {
	err := o.readJSON(func(text []byte) {
		if o.isCustom {
			dst = append(dst, text...)
			return
		}
		kind, version, rest, found := cutTypeMeta(text)
		if !found {
			dst = append(dst, text...)
			return
		}
		dst = append(append(dst, `{"kind":`...), kind...)
		dst = append(append(dst, `,"apiVersion":`...), version...)
		dst = append(append(dst, ','), rest...)
	})
	return dst, err
}

func (o object) AppendItem(dst []byte) ([]byte, error) {
	err := o.readJSON(func(text []byte) {
		if o.isCustom {
			dst = append(dst, text...)
			return
		}
		_, _, rest, found := cutTypeMeta(text)
		if !found {
			dst = append(dst, text...)
			return
		}
		dst = append(append(dst, '{'), rest...)
	})
	return dst, err
}

// readJSON calls yield with the JSON of the object, which is valid until yield returns.
func (o object) readJSON(yield func(text []byte)) error {
	err := o.stored.ReadJSON(func(text []byte) error { yield(text); return nil })
	if err != nil {
		return fmt.Errorf("%s: %w", o.key, err)
	}
	return nil
}

// cutTypeMeta cuts kind and apiVersion off the beginning of an object if they are in the order of a
// kube-apiserver's built-in types or of the informer. rest begins after their comma.
func cutTypeMeta(text []byte) (kind, version, rest []byte, found bool) {
	rest, found = bytes.CutPrefix(text, []byte{'{'})
	if !found {
		return nil, nil, nil, false
	}
	if kind, rest, found = cutMember(rest, `"kind":`); found {
		version, rest, found = cutMember(rest, `"apiVersion":`)
	} else if version, rest, found = cutMember(rest, `"apiVersion":`); found {
		kind, rest, found = cutMember(rest, `"kind":`)
	}
	return kind, version, rest, found
}

// cutMember cuts a field with a plain string value, and the following comma, off the beginning of a text.
func cutMember(text []byte, name string) (value, rest []byte, found bool) {
	after, found := bytes.CutPrefix(text, []byte(name+`"`))
	if !found {
		return nil, text, false
	}
	end := bytes.IndexAny(after, `"\`)
	if end < 0 || !bytes.HasPrefix(after[end:], []byte(`",`)) {
		return nil, text, false
	}
	start := len(name)
	return text[start : start+end+2], after[end+2:], true
}

// indexKey returns the key of a value in an index. index is nil if the index does not exist or is composite.
func (c *collection) indexKey(name, value string) (key string, index *indexers.Index, err error) {
	for _, x := range c.view.Declared() {
		if x.Name == name && !x.Composite() {
			key, err := x.Key(x.Operand(0, value, false))
			return key, x, err
		}
	}
	return "", nil, nil
}

// Field implements readapi.Fields. It refuses an index over fields that the cache drops: it would have no
// values.
func (c *collection) Field(name, value string) (func(readapi.Object) bool, error) {
	key, index, err := c.indexKey(name, value)
	if err != nil || index == nil {
		return nil, err
	}
	for _, field := range index.Fields() {
		if c.informer.Drops(field) {
			return nil, &query.DroppedFieldError{Field: field, Index: name}
		}
	}
	c.usesIndexes = true
	functions := indexers.CompileIndexes(index)
	return func(o readapi.Object) bool {
		text, err := o.JSON()
		return err == nil && slices.Contains(functions.KeysJSON(text, nil)[0], key)
	}, nil
}
