package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// StorageOptions are the options of a Storage. The zero value is usable.
type StorageOptions struct {
	// History is the minimum number of changes that are retained for the watches of each type. Default 1000.
	History int
	// Stamp sets uid, creationTimestamp and generation like a kube-apiserver. The generation counts changes
	// outside of metadata and status. Default: only the resource version is set.
	Stamp bool
	// Compress compresses the larger restored objects. Reading one then takes some microseconds; reading in
	// the order of restoring is faster.
	Compress bool
	// OmitSystemTypes omits the types CustomResourceDefinition and APIService until SetType adds them, and
	// creates no APIServices. Default: like a kube-apiserver, the storage creates one APIService for each
	// group version. Clients watch them to notice new types.
	OmitSystemTypes bool
	// Conform drops unknown fields of custom resources and sets the defaults of their schema. Objects that
	// clients write always conform. Default: objects are stored unchanged.
	Conform bool
	// Namespaces gives namespaces the life cycle of a cluster: clients can create objects only in existing
	// namespaces that are not terminating, and deleting a namespace deletes its objects. The Namespace type
	// must be registered with SetType or SetBuiltIn. Default: a namespace is an object like any other.
	Namespaces bool
	// Select keeps each object in the versions in which it was stored. It selects all objects for requests
	// for a version, or those stored in it, if there are any. Default: all are converted.
	Select func(t *readapi.Type, version string, hasObjects bool) (all, convert bool)
	// Refuse returns an error for reads of a type whose objects are unknown. Optional.
	Refuse func(gr schema.GroupResource, hasObjects bool) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Storage holds types and their objects. It is a readapi.Backend, and safe for concurrent use.
type Storage struct {
	options StorageOptions

	mu struct {
		sync.Mutex
		version uint64 // the latest resource version
		types   map[schema.GroupResource]*collection
		kinds   map[schema.GroupKind]*collection
		// typesVersion changes with every change of a type.
		typesVersion   uint64
		compressBuffer []byte
		terminating    map[owner]struct{}
	}
}

// NewStorage returns a Storage without objects, by default with CustomResourceDefinition and APIService.
func NewStorage(options StorageOptions) *Storage {
	options.History = cmp.Or(max(options.History, 0), 1000)
	if options.Now == nil {
		options.Now = time.Now
	}
	s := &Storage{options: options}
	s.mu.version = 1
	s.mu.types = map[schema.GroupResource]*collection{}
	s.mu.kinds = map[schema.GroupKind]*collection{}
	s.mu.terminating = map[owner]struct{}{}
	for _, b := range naming.SystemTypes { // APIService first: the group of the next type gets one
		if options.OmitSystemTypes {
			break
		}
		if err := s.setType(BuiltinType(b, b.Version), Rules{}, "", options.Now()); err != nil {
			panic(err) // the types are constant
		}
	}
	return s
}

// Outcome is the effect of a write.
type Outcome string

// The effects of a write.
const (
	Unchanged Outcome = "unchanged" // the object existed with the same content
	Added     Outcome = "added"
	Updated   Outcome = "updated"
)

// UnknownTypeError is the error for an object of an unknown kind or of a version that is not served.
type UnknownTypeError struct {
	GVK schema.GroupVersionKind
	// Served are the served versions of the kind. It is nil if the kind is unknown.
	Served []string
}

func (e *UnknownTypeError) Error() string {
	if len(e.Served) > 0 {
		return fmt.Sprintf("%s is not served in version %q but in %q", e.GVK.GroupKind(),
			e.GVK.Version, e.Served)
	}
	return fmt.Sprintf("no type has the kind %s", e.GVK.GroupKind())
}

// Apply creates or replaces an object and notifies watches. A CustomResourceDefinition defines its type
// immediately. An object of a namespaced type without a namespace goes to "default". The resource version is
// replaced. Apply does not change or retain obj.
//
// The error is an *UnknownTypeError if the type is unknown; any other error describes the object.
func (s *Storage) Apply(obj *unstructured.Unstructured) (Outcome, error) {
	return s.put(s.copyOf(obj), putOptions{now: s.options.Now()})
}

// Restore works like Apply for objects of another server, which keep their resource version. Use it before
// the storage is served: it drops the history of the type, so that watches end with 410.
func (s *Storage) Restore(obj *unstructured.Unstructured) (Outcome, error) {
	return s.put(s.copyOf(obj), putOptions{now: s.options.Now(), restore: true})
}

// copyOf copies the parts of an object that put can change.
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

// Delete removes an object, notifies watches, and reports whether the object existed. Deleting a
// CustomResourceDefinition removes its type with all objects.
func (s *Storage) Delete(gr schema.GroupResource, namespace, name string) bool {
	key, now := naming.KeyOf(namespace, name), s.options.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil || c.objects[key] == nil {
		return false
	}
	s.deleteLocked(c, key, now)
	return true
}

// deleteLocked removes an object and the type that it defines. It then finishes deletions that waited for it.
func (s *Storage) deleteLocked(c *collection, key string, now time.Time) {
	s.remove(c, key)
	if c.typ.GroupResource() == definitions {
		s.removeDefinedType(key, now)
	}
	s.finishDeletions(now)
}

func (s *Storage) remove(c *collection, key string) {
	s.mu.version++
	s.change(c, key, nil, false)
	for _, inVersion := range c.inVersion {
		if inVersion.objects[key] != nil {
			s.change(inVersion, key, nil, false)
		}
	}
}

// change stores a state of an object at the current version, or removes the object if after is nil, and
// notifies watches. isRestore drops the history instead.
func (s *Storage) change(c *collection, key string, after *object, isRestore bool) {
	change := readapi.Change{ResourceVersion: s.mu.version, Before: objectOrNil(c.objects[key]),
		After: objectOrNil(after)}
	c.put(key, after)
	if isRestore {
		c.dropHistory(s.mu.version)
	} else {
		c.record(change, s.options.History)
	}
}

// ResourceVersion returns the resource version of the latest change.
func (s *Storage) ResourceVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.mu.version, 10)
}

// Compact drops the history of all types: watches from before now end with 410.
func (s *Storage) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.mu.types {
		c.dropHistory(s.mu.version)
	}
}

// Has reports whether an object exists.
func (s *Storage) Has(gr schema.GroupResource, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	return c != nil && c.objects[naming.KeyOf(namespace, name)] != nil
}

// RestoreCanonical works like Restore for an object that need not be decoded. It returns false if that is
// impossible, as for an object that exists. It changes the text.
func (s *Storage) RestoreCanonical(c *manifest.Canonical) bool {
	if s.options.Stamp || c.Kind == definitionKind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(c.APIVersion)
	version, ok := parseVersion(c.ResourceVersion)
	if err != nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	target := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: c.Kind}]
	if target == nil || target.typ.Version(gv.Version) == nil ||
		target.typ.Namespaced != (c.Namespace != "") {
		return false
	}
	key := naming.KeyOf(c.Namespace, c.Name)
	if key == "" || target.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, version: target.typ.Version(gv.Version).Name}
	s.setText(o, c.Body())
	s.change(target, key, o, true)
	if own := target.inVersion[o.version]; own != nil {
		s.change(own, key, o, true)
	}
	return true
}

// Skip uses a resource version like Restore, without an object.
func (s *Storage) Skip(resourceVersion string) {
	version, ok := parseVersion(resourceVersion)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.version++; ok {
		s.mu.version = max(s.mu.version, version)
	}
}
