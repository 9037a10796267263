package dynamicinformer

import (
	"iter"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Snapshot is the content of an informer's cache at one moment, with all its indexes. It is immutable: any
// number of goroutines can read it without a lock, for any length of time. It keeps its objects in memory.
//
// Objects are the same as from listers: shared and read-only *unstructured.Unstructured, unless a transform
// returned another runtime.Object. Get and All decode objects, which Stats does not count; the other methods
// decode nothing. With StorageNone, methods that return objects or indexes fail with Err.
type Snapshot struct {
	content *store.Snapshot
	err     error // see Err
}

// Snapshot returns the current content of the cache, in constant time.
func (i *Informer) Snapshot() *Snapshot { return &Snapshot{i.core.Snapshot(), i.checkStored()} }

// Err returns an error that wraps ErrNotStored with StorageNone. Methods without an error result then panic
// with it, except Len, ResourceVersion and Keys.
func (s *Snapshot) Err() error { return s.err }

// objects returns the content of a snapshot that has objects.
func (s *Snapshot) objects() *store.Snapshot {
	if s.err != nil {
		panic(s.err)
	}
	return s.content
}

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.content.Len() }

// ResourceVersion returns the version of the last list, event or bookmark in the snapshot.
func (s *Snapshot) ResourceVersion() string { return s.content.ResourceVersion() }

// Keys returns the keys of all objects, "namespace/name" or the name, in no particular order. The caller owns
// the keys: they do not pin the objects.
func (s *Snapshot) Keys() []string { return s.content.Keys() }

// Get returns the object with the key, and whether it exists.
func (s *Snapshot) Get(key string) (object runtime.Object, ok bool) {
	object, ok = s.Stored(key)
	return decodedForReaders(object), ok
}

// All yields each object with its key, in no particular order. It decodes one object at a time.
func (s *Snapshot) All() iter.Seq2[string, runtime.Object] {
	return func(yield func(string, runtime.Object) bool) {
		for key, object := range objectsOnly(s.objects().All) {
			if !yield(strings.Clone(key), decodedForReaders(object)) {
				return
			}
		}
	}
}

// IndexNames returns the names of the complete indexes.
func (s *Snapshot) IndexNames() []string { return s.objects().IndexNames() }

// KeysByIndex returns the sorted keys of the objects with the value in the index. It fails without the index.
func (s *Snapshot) KeysByIndex(index, value string) ([]string, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.content.KeysByIndex(index, value)
}

// decodedForReaders returns a stored object as readers receive it: decoded if it is packed.
func decodedForReaders(object runtime.Object) runtime.Object {
	if o, ok := object.(*packed.Object); ok {
		return o.Unstructured()
	}
	return object
}

// runtimeObject returns a stored item, or false if a transform made something else of the object.
func runtimeObject(item store.Item) (runtime.Object, bool) {
	switch o := item.(type) {
	case *packed.Object:
		return o, true
	case *unstructured.Unstructured:
		return o, true
	case runtime.Object:
		return o, true
	}
	return nil, false
}

func objectsOnly(items func(func(string, store.Item) bool)) iter.Seq2[string, runtime.Object] {
	return func(yield func(string, runtime.Object) bool) {
		items(func(key string, item store.Item) bool {
			object, ok := runtimeObject(item)
			return !ok || yield(key, object)
		})
	}
}

// Stored returns the object with the key in its stored form, and whether it exists. The form is a
// PackedObject, or the object that readers receive with StorageObject and after a transform to another type.
func (s *Snapshot) Stored(key string) (object runtime.Object, ok bool) {
	item, _ := s.objects().Get(key) // nil is no object
	return runtimeObject(item)
}

// Lookup works like Stored for an object name. A name with a slash, in keys a namespace, matches no object.
func (s *Snapshot) Lookup(name cache.ObjectName) (object runtime.Object, ok bool) {
	key, ok := naming.Key(name)
	if !ok {
		return nil, false
	}
	return s.Stored(key)
}

// AllStored yields each object in its stored form (see Stored) with its key, in no particular order. The key
// may share the object's memory: clone keys that you keep without the object.
func (s *Snapshot) AllStored() iter.Seq2[string, runtime.Object] { return objectsOnly(s.objects().All) }

// AllJSON calls read for each object with its key and JSON, in no particular order, and returns the first
// error. The JSON of packed objects is the server's text, without the fields that Prune drops. It is valid
// until read returns, and must not be changed.
func (s *Snapshot) AllJSON(read func(key string, text []byte) error) error {
	if s.err != nil {
		return s.err
	}
	for key, item := range s.content.All {
		if err := store.ReadJSON(strings.Clone(key), item, (*packed.Object).ReadJSON, read); err != nil {
			return err
		}
	}
	return nil
}

// PackedObject is an object that is stored as JSON. Snapshot.Stored returns it in all modes except
// StorageObject, and handlers receive it with MetadataOnly. It is also a metav1.Object and a runtime.Object,
// so meta.Accessor reads its metadata, without decoding. It is immutable and safe for concurrent use. It may
// get more methods: do not implement it.
type PackedObject interface {
	// Labels returns metadata.labels without decoding the object. The strings share the object's memory:
	// clone strings that you keep without the object.
	Labels() labels.Labels
	// ReadJSON calls read with the JSON, which read must neither change nor retain. Only compressed objects
	// are copied. The error is that of read, or reports a damaged object.
	ReadJSON(read func(json []byte) error) error
	// Unstructured returns the decoded object, shared and read-only. Later calls return the same copy until
	// the garbage collector frees it. For a damaged object it returns the fields known without JSON.
	Unstructured() *unstructured.Unstructured
	// Decoded returns the copy of Unstructured if it is still in memory, or nil.
	Decoded() *unstructured.Unstructured
	// Decode returns a new decoded copy that the caller owns. It fails for a damaged object.
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

// SnapshotIndex is one index of a Snapshot. It is immutable and reads take no lock.
type SnapshotIndex struct{ view store.IndexView }

// Index returns the index with the name, and whether it exists and is complete.
func (s *Snapshot) Index(name string) (SnapshotIndex, bool) {
	view, ok := s.objects().Index(name)
	return SnapshotIndex{view}, ok
}

// IndexSet returns the set that computes the values, or nil for an index function.
func (x SnapshotIndex) IndexSet() IndexSet {
	set, _ := x.view.Extractor().(IndexSet)
	return set
}

// All yields each value with its number of objects, in no particular order.
func (x SnapshotIndex) All() iter.Seq2[string, int] { return x.view.Each }

// Len returns the number of different values.
func (x SnapshotIndex) Len() int { return x.view.Len() }

// Count returns the number of objects with the value.
func (x SnapshotIndex) Count(value string) int { return x.view.Count(value) }

// Has reports whether the object with the key has the value.
func (x SnapshotIndex) Has(value, key string) bool { return x.view.Has(value, key) }

// AppendValues appends the values of the object with the key to a list, in no particular order. known is
// false if there is no such object, or if the index was removed after the Snapshot. It reads the index and
// computes nothing. The strings share memory with all index values of the object. Clone strings to keep.
func (x SnapshotIndex) AppendValues(to []string, key string) (values []string, known bool) {
	return x.view.AppendValues(to, key)
}

// Objects yields each object with the value, with its key, in no particular order. Objects and keys are as in
// Snapshot.AllStored: not decoded.
func (x SnapshotIndex) Objects(value string) iter.Seq2[string, runtime.Object] {
	return objectsOnly(func(yield func(string, store.Item) bool) { x.view.Objects(value, yield) })
}

// Range yields each value from from (inclusive) to to (exclusive) with its number of objects, in ascending or
// descending order. An empty bound is open. An unsorted index (see IndexSet.Ordered) is sorted for each call.
func (x SnapshotIndex) Range(from, to string, descending bool) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) { x.view.Keys(from, to, descending, yield) }
}

// CountRange returns the number of values in the range from (inclusive) to to (exclusive) without iterating.
// An empty bound is open. ok is false for an unsorted index.
func (x SnapshotIndex) CountRange(from, to string) (count int, ok bool) {
	return x.view.CountKeys(from, to)
}
