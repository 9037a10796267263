package dynamicinformer

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/pattern"
	"github.com/crdcache/crdcache/internal/store"
)

// PackedObject is an object that is stored as JSON. Snapshot.Stored returns it in all modes except
// StorageObject, and handlers receive it with MetadataOnly. It is also a metav1.Object and a runtime.Object,
// so meta.Accessor reads its metadata. It is immutable and safe for concurrent use.
type PackedObject interface {
	// Labels returns metadata.labels without decoding the object. The strings share the object's memory:
	// clone strings that you keep without the object.
	Labels() labels.Labels
	// View calls read with the JSON, which read must neither change nor retain. Only compressed objects are
	// copied. The error is that of read, or reports a damaged object.
	View(read func(json []byte) error) error
	// Unstructured returns the decoded object, shared and read-only. Later calls return the same copy until
	// the garbage collector frees it. For a damaged compressed object it returns the fields that are known
	// without its JSON.
	Unstructured() *unstructured.Unstructured
	// Decoded returns the copy of Unstructured if it is still in memory, or nil.
	Decoded() *unstructured.Unstructured
	// Decode returns a new decoded copy that the caller owns. It returns an error for a damaged compressed
	// object.
	Decode() (*unstructured.Unstructured, error)
	// KeepDecoded caches value, a pointer to a struct that the caller decoded from the JSON, until the
	// garbage collector frees it, and returns it. If another caller was faster, it returns that caller's
	// value. The result is shared and must not be changed. The object caches one type at a time. KeepDecoded
	// panics if value is not a pointer to a struct.
	KeepDecoded(value any) any
	// DecodedAs returns the value that KeepDecoded cached for this struct type, or nil.
	DecodedAs(structType reflect.Type) any
}

var _ PackedObject = (*packed.Object)(nil)

// Stored returns the object with the key in its stored form, and whether it exists. The form is a
// PackedObject, or the object that readers receive with StorageObject and after a transform to another type.
func (s *Snapshot) Stored(key string) (object any, ok bool) { return s.content.Get(key) }

// Lookup is Stored for an object name. A name with a slash matches no object; as a key it would refer to
// another namespace.
func (s *Snapshot) Lookup(name cache.ObjectName) (object any, ok bool) {
	key, ok := pattern.Key(name)
	if !ok {
		return nil, false
	}
	return s.content.Get(key)
}

// AllStored calls yield for each object in its stored form (see Stored) with its key, in no particular order,
// until yield returns false. The key may share the object's memory: clone keys that you keep without the
// object.
func (s *Snapshot) AllStored(yield func(key string, object any) bool) {
	s.content.All(func(key string, item store.Item) bool { return yield(key, item) })
}

// JSON returns a copy of the JSON of the object with the key, without surrounding white space, and whether
// the object exists. Objects that are stored as JSON have the server's text, without the fields that Prune
// drops. It returns an error for a damaged compressed object, and for an object that cannot be encoded.
func (s *Snapshot) JSON(key string) (text []byte, ok bool, err error) {
	item, ok := s.content.Get(key)
	if !ok {
		return nil, false, nil
	}
	if text, err = store.AppendJSON(nil, item); err != nil {
		return nil, true, fmt.Errorf("%s: %w", key, err)
	}
	return text, true, nil
}

// AllJSON calls read for each object with its key and JSON (see JSON), in no particular order, and returns
// the first error. The JSON is valid until read returns, and must not be changed.
func (s *Snapshot) AllJSON(read func(key string, text []byte) error) error {
	for key, item := range s.content.All {
		if err := store.ReadJSON(strings.Clone(key), item, (*packed.Object).View, read); err != nil {
			return err
		}
	}
	return nil
}
