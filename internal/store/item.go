package store

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// Item is the stored representation of an object. meta.Accessor works on it without decoding a body.
type Item = any

// KeyOf is client-go's key function, without an allocation for packed objects.
func KeyOf(obj any) (string, error) {
	if o, ok := obj.(*packed.Object); ok {
		return o.Key(), nil
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// NamespaceOf returns "" if the item has no metadata.
func NamespaceOf(item Item) string {
	if m, err := meta.Accessor(item); err == nil {
		return m.GetNamespace()
	}
	return ""
}

// UIDOf returns "" if the item has no metadata. The result may reference the item.
func UIDOf(item Item) types.UID {
	if o, ok := item.(*packed.Object); ok {
		return o.UID()
	}
	if m, err := meta.Accessor(item); err == nil {
		return m.GetUID()
	}
	return ""
}

// VersionOf returns the resource version of an item. Unlike OwnedVersionOf's, it may reference the item.
func VersionOf(item Item) string {
	if o, ok := item.(*packed.Object); ok {
		return o.Version()
	}
	return OwnedVersionOf(item)
}

// OwnedVersionOf returns the resource version, or "" if the object has no metadata. The result does not
// reference the object.
func OwnedVersionOf(obj any) string {
	if m, err := meta.Accessor(obj); err == nil {
		return m.GetResourceVersion()
	}
	return ""
}

// SameUID reports whether two items with one key are the same object. A missing UID equals all others.
func SameUID(a, b Item) bool {
	before, after := UIDOf(a), UIDOf(b)
	return before == after || before == "" || after == ""
}

// SameVersion reports whether two items have the same resource version.
func SameVersion(a, b Item) bool { return VersionOf(a) == VersionOf(b) }

// IsIdentity reports whether an item is only an identity.
func IsIdentity(item Item) bool {
	o, ok := item.(*packed.Object)
	return ok && o.IsIdentity()
}

// Unchanged reports whether two items are the same version of an object, as in a relist or resync. The
// content of objects without a resource version, which some aggregated API servers send, is compared.
func Unchanged(a, b Item) bool {
	if !SameVersion(a, b) || VersionOf(a) != "" {
		return SameVersion(a, b)
	}
	x, isPacked := a.(*packed.Object)
	y, bothPacked := b.(*packed.Object)
	if isPacked && bothPacked {
		return !x.IsIdentity() && !y.IsIdentity() && x.SameContent(y)
	}
	return reflect.DeepEqual(a, b)
}

// ReadJSON calls read with the JSON of an item. readPacked reads a packed item: Object.ReadJSON, which
// marks the item as read, or Object.PeekJSON, which does not.
func ReadJSON(key string, item Item, readPacked func(*packed.Object, func([]byte) error) error,
	read func(key string, text []byte) error) error {
	if o, ok := item.(*packed.Object); ok {
		called := false
		err := readPacked(o, func(text []byte) error {
			called = true
			return read(key, text)
		})
		if err != nil && !called {
			return fmt.Errorf("%s: %w", key, err)
		}
		return err
	}
	text, err := encodeItem(item)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return read(key, text)
}

// encodeItem encodes an item that is stored decoded.
func encodeItem(item Item) ([]byte, error) {
	if u, ok := item.(*unstructured.Unstructured); ok && u != nil {
		return json.Marshal(u.Object)
	}
	return json.Marshal(item)
}
