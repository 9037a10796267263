package readapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// DefaultHistory is the default of StorageOptions.History.
const DefaultHistory = 1000

// StorageOptions adjusts a Storage. The zero value is usable.
type StorageOptions struct {
	// History is how many changes of each type can at least be watched after the fact. What it costs is
	// the memory of the states before and after. Default DefaultHistory.
	History int
	// Stamp gives objects what a kube-apiserver would: a UID and a creation time where they have none, and a
	// generation that counts changes outside of metadata and status. Default: objects are kept as they come,
	// but for the resource version.
	Stamp bool
	// Compress keeps objects that Restore or RestoreJSON brings compressed, in a fifth of the memory or less.
	// Reading them costs some microseconds each, and less in the order in which they were brought.
	Compress bool
	// OnlyApplied keeps no APIServices but those that are applied. Default: as a kube-apiserver does, the
	// storage has one for each group version of its types, by which clients learn of changes; of types that
	// no CustomResourceDefinition defines, they then have to be told otherwise.
	OnlyApplied bool
	// Conform makes of custom resources what a kube-apiserver makes of them when it reads them: fields that
	// the schema of their type does not have are dropped, and its defaults filled in. What clients write is
	// treated so in any case. Default: objects are kept as they come.
	Conform bool
	// Namespaces gives namespaces, whose type must be there, the life that they have in a cluster: nothing is
	// created by a client in one that is not there or is being deleted, and who deletes one deletes all that
	// is in it. Default: they are objects like any other.
	Namespaces bool
	// Now is the clock for Stamp and for what clients write. Default time.Now.
	Now func() time.Time
}

// Storage holds types and their objects. It is safe for concurrent use, and only reached by NewStorage.
type Storage struct {
	options StorageOptions

	mu struct {
		sync.Mutex
		version uint64 // the last resource version that was given away
		types   map[schema.GroupResource]*collection
		kinds   map[schema.GroupKind]*collection
		// served counts the changes of types; answers about them are kept as long as it does not move.
		served uint64
		blocks blocks // what objects that are restored are added to
		// leaving is what clients have deleted and what is kept by what it holds.
		leaving map[leaving]struct{}
	}
	reading canonicals
}

// NewStorage returns a Storage that knows CustomResourceDefinitions and APIServices, and has no object.
func NewStorage(options StorageOptions) *Storage {
	options.History = cmp.Or(max(options.History, 0), DefaultHistory)
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Storage{options: options}
	s.mu.version = 1
	s.mu.types = map[schema.GroupResource]*collection{}
	s.mu.kinds = map[schema.GroupKind]*collection{}
	s.mu.leaving = map[leaving]struct{}{}
	now := options.Now()
	for _, t := range systemTypes() {
		if err := s.setType(t, "", write{now: now, restore: true}); err != nil {
			panic(err) // the types are constant
		}
	}
	return s
}

// Outcome is what a write came to.
type Outcome string

// What a write can come to.
const (
	Unchanged Outcome = "unchanged" // it was there with the same content
	Added     Outcome = "added"
	Updated   Outcome = "updated"
)

// UnknownTypeError is the error for an object of a kind that the storage does not know or does not serve in
// that version.
type UnknownTypeError struct {
	GVK schema.GroupVersionKind
	// Served are the versions that are, or nil when the kind is unknown.
	Served []string
}

func (e *UnknownTypeError) Error() string {
	if len(e.Served) > 0 {
		return fmt.Sprintf("%s is not served in version %q but in %q", e.GVK.GroupKind(),
			e.GVK.Version, e.Served)
	}
	return fmt.Sprintf("no type has the kind %s", e.GVK.GroupKind())
}

// Apply adds an object or puts it in the place of the one with its name, and tells the watches. A
// CustomResourceDefinition defines its type, at once. An object of a namespaced type without a
// namespace goes to "default". Its resource version is replaced. obj is neither changed nor kept.
//
// The error is an *UnknownTypeError for an object of an unknown type, and otherwise says what is wrong with
// the object.
func (s *Storage) Apply(obj *unstructured.Unstructured) (Outcome, error) {
	return s.put(s.copyOf(obj), write{now: s.options.Now()})
}

// ApplyJSON is Apply of an object in JSON.
func (s *Storage) ApplyJSON(data []byte) (Outcome, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return "", err
	}
	return s.put(content, write{now: s.options.Now()})
}

// Restore is Apply for objects that come from another server: they keep their resource version. It is meant
// for filling a storage before it is served. Watches of the type end with 410, and so do those that go on
// from an earlier list, because a change without a version of its own cannot be told.
func (s *Storage) Restore(obj *unstructured.Unstructured) (Outcome, error) {
	return s.put(s.copyOf(obj), write{now: s.options.Now(), restore: true})
}

// RestoreJSON is Restore of an object in JSON, which is not kept. It is faster: what has the form that API
// servers send is not decoded.
func (s *Storage) RestoreJSON(data []byte) (Outcome, error) {
	if outcome, done := s.restoreText(data); done {
		return outcome, nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return "", err
	}
	return s.put(content, write{now: s.options.Now(), restore: true})
}

// copyOf copies as much of an object as writing may change.
func (s *Storage) copyOf(obj *unstructured.Unstructured) map[string]any {
	if s.options.Conform {
		return obj.DeepCopy().Object
	}
	content := maps.Clone(obj.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(metadata)
	}
	return content
}

// Delete removes an object and tells the watches, and says whether there was one. A deleted
// CustomResourceDefinition takes its type and all objects of it along.
func (s *Storage) Delete(gr schema.GroupResource, namespace, name string) bool {
	w := write{now: s.options.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil || c.objects[objectKey(namespace, name)] == nil {
		return false
	}
	s.remove(c, objectKey(namespace, name))
	if gr == definitions {
		s.undefine(name, w)
	}
	s.settle(w)
	return true
}

// remove deletes one object.
func (s *Storage) remove(c *collection, key string) {
	before := c.objects[key]
	c.put(key, nil)
	s.mu.version++
	c.record(Change{ResourceVersion: s.mu.version, Before: asObject(before)}, s.options.History)
}

// ResourceVersion returns the version of the last change, as lists report it.
func (s *Storage) ResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.mu.version, 10)
}

// Compact forgets all history, of which a test of 410 Expired has use.
func (s *Storage) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.types {
		c.forget(s.mu.version)
	}
}

// Len returns the number of objects of a type.
func (s *Storage) Len(gr schema.GroupResource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.mu.types[gr]; c != nil {
		return len(c.objects)
	}
	return 0
}

// Has reports whether an object is there.
func (s *Storage) Has(gr schema.GroupResource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	return c != nil && c.objects[objectKey(namespace, name)] != nil
}

// Types returns all types, by group and plural. What they refer to must not be changed.
func (s *Storage) Types() []Type {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typesLocked()
}

func (s *Storage) typesLocked() []Type {
	all := make([]Type, 0, len(s.mu.types))
	for _, c := range s.mu.types {
		all = append(all, c.typ)
	}
	slices.SortFunc(all, func(a, b Type) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Names.Plural, b.Names.Plural))
	})
	return all
}
