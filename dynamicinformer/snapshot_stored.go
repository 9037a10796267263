package dynamicinformer

import (
	"encoding/json"
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

// PackedObject is an object whose JSON is kept. It is what Snapshot.Stored returns in all modes but
// StorageObject, and what handlers get that MetadataOnly was applied to. It is also a metav1.Object and a
// runtime.Object: meta.Accessor reads its metadata. It never changes, and is safe for concurrent use.
type PackedObject interface {
	// Labels returns metadata.labels for a selector to match, without decoding the object. The texts are
	// parts of the object's memory: clone what you keep without the object.
	Labels() labels.Labels
	// View calls read with the JSON, which read must neither change nor keep. Nothing is copied unless the
	// object is compressed. The error is that of read, or says that the object is damaged.
	View(read func(json []byte) error) error
	// Unstructured returns the object decoded: shared and read-only. Later callers get the same copy until
	// the garbage collector takes it. Of a compressed object that is damaged it returns what is known without
	// the body.
	Unstructured() *unstructured.Unstructured
	// Decoded returns the copy that Unstructured made if it is still in memory, or nil.
	Decoded() *unstructured.Unstructured
	// Decode returns a decoded copy that is the caller's own. It fails for a compressed object that is
	// damaged.
	Decode() (*unstructured.Unstructured, error)
	// KeepDecoded keeps value, a pointer to a struct that the caller has decoded the JSON into, for DecodedAs
	// to return until the garbage collector takes it, and returns it, or that of a caller who was faster.
	// What it returns is shared from then on, and must not be changed. One type is kept at a time. It panics
	// for what is no pointer to a struct.
	KeepDecoded(value any) any
	// DecodedAs returns what KeepDecoded keeps of this type of struct, or nil.
	DecodedAs(structType reflect.Type) any
}

var _ PackedObject = (*packed.Object)(nil)

// Stored returns the object of a key as it is kept, and whether there is one: a PackedObject, or with
// StorageObject, and where a transform has made something else of an object, what readers get.
func (s *Snapshot) Stored(key string) (object any, ok bool) { return s.content.Get(key) }

// Lookup returns the object of a name as Stored does. Unlike a key, a name with a slash never leads to
// another namespace: there is no such object.
func (s *Snapshot) Lookup(name cache.ObjectName) (object any, ok bool) {
	key, ok := pattern.Key(name)
	if !ok {
		return nil, false
	}
	return s.content.Get(key)
}

// AllStored calls yield for each object as it is kept (see Stored) with its key, in no particular order,
// until it returns false. The key may be a part of the object's memory: clone it to keep it without the
// object.
func (s *Snapshot) AllStored(yield func(key string, object any) bool) {
	s.content.All(func(key string, item store.Item) bool { return yield(key, item) })
}

// JSON returns the JSON of the object of a key in a copy that is the caller's own, without white space around
// it, and whether there is such an object. Where objects are kept as JSON it is what the server sent, without
// what Prune leaves out. It fails for a compressed object that is damaged, and for what cannot be written as
// JSON.
func (s *Snapshot) JSON(key string) (text []byte, ok bool, err error) {
	item, ok := s.content.Get(key)
	if !ok {
		return nil, false, nil
	}
	if o, packs := item.(*packed.Object); packs {
		text, err = o.AppendJSON(nil)
	} else {
		text, err = marshal(item)
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s: %w", key, err)
	}
	return text, true, nil
}

// AllJSON calls read for each object with its key and its JSON (see JSON), in no particular order, and
// returns the first error, its own or that of read. The JSON is good until read returns, and must not be
// changed.
func (s *Snapshot) AllJSON(read func(key string, text []byte) error) error {
	for key, item := range s.content.All {
		if err := readJSON(strings.Clone(key), item, (*packed.Object).View, read); err != nil {
			return err
		}
	}
	return nil
}

// readJSON calls read with the JSON of an item, which view gives of one that is packed: Object.View, or
// Object.Peek for who is no reader.
func readJSON(key string, item store.Item, view func(*packed.Object, func([]byte) error) error,
	read func(key string, text []byte) error) error {
	if o, packs := item.(*packed.Object); packs {
		called := false
		err := view(o, func(text []byte) error {
			called = true
			return read(key, text)
		})
		if err != nil && !called {
			return fmt.Errorf("%s: %w", key, err)
		}
		return err
	}
	text, err := marshal(item)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return read(key, text)
}

// marshal writes what is kept decoded.
func marshal(item store.Item) ([]byte, error) {
	if u, ok := item.(*unstructured.Unstructured); ok && u != nil {
		return json.Marshal(u.Object)
	}
	return json.Marshal(item)
}
