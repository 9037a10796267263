package follow

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// TypeRegistry stores the types last reported by a source of types, and calls watchers after changes of
// a type. It is safe for concurrent use.
type TypeRegistry struct {
	onComplete func()
	onError    func(error)

	mu struct {
		sync.Mutex
		types map[schema.GroupResource]registeredType
		// watchers are called after each change.
		watchers map[schema.GroupResource][]*func()
		unknown  map[schema.GroupVersion]error // group versions that could not be discovered
		complete bool
	}
}

// registeredType is the last reported state of a type. removed states that the server does not serve it any
// more, although its objects may exist.
type registeredType struct {
	typesource.Type
	removed bool
}

// NewTypeRegistry returns an empty registry. onComplete is called, without locks, when the source has
// reported all types; onError with the reason why it cannot, or nil.
func NewTypeRegistry(onComplete func(), onError func(error)) *TypeRegistry {
	b := &TypeRegistry{onComplete: onComplete, onError: onError}
	b.mu.types = map[schema.GroupResource]registeredType{}
	b.mu.watchers = map[schema.GroupResource][]*func(){}
	return b
}

// get returns the current state of a type.
func (b *TypeRegistry) get(gr schema.GroupResource) *typeState {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, known := b.mu.types[gr]
	return &typeState{Type: t.Type, exists: known && !t.removed, deleted: !known, complete: b.mu.complete,
		unknown: b.mu.unknown}
}

// addWatcher calls changed, without locks, after each change of a type until stop is called. A call may be in
// progress when stop returns.
func (b *TypeRegistry) addWatcher(gr schema.GroupResource, changed func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.watchers[gr] = append(b.mu.watchers[gr], &changed)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		remaining := slices.DeleteFunc(b.mu.watchers[gr], func(f *func()) bool { return f == &changed })
		if b.mu.watchers[gr] = remaining; len(remaining) == 0 {
			delete(b.mu.watchers, gr)
		}
	}
}

func (b *TypeRegistry) SetType(t typesource.Type) {
	b.change(t.GroupResource, func() { b.mu.types[t.GroupResource] = registeredType{Type: t} })
}

func (b *TypeRegistry) RemoveType(gr schema.GroupResource, deleted bool) {
	b.change(gr, func() {
		if t, known := b.mu.types[gr]; known && !deleted {
			b.mu.types[gr] = registeredType{t.Type, true}
			return
		}
		delete(b.mu.types, gr)
	})
}

func (b *TypeRegistry) SetUnknown(unknown map[schema.GroupVersion]error) {
	b.onError(unknown[schema.GroupVersion{}])
	delete(unknown, schema.GroupVersion{})
	b.changeAll(func() { b.mu.unknown = unknown })
}

func (b *TypeRegistry) SetComplete() {
	defer b.onComplete()
	b.changeAll(func() { b.mu.complete = true })
}

// changeAll changes the state of every type and calls all watchers.
func (b *TypeRegistry) changeAll(set func()) {
	b.mu.Lock()
	set()
	changed := slices.Concat(slices.Collect(maps.Values(b.mu.watchers))...)
	b.mu.Unlock()
	callAll(changed)
}

// change changes the state of a type and calls its watchers.
func (b *TypeRegistry) change(gr schema.GroupResource, set func()) {
	b.mu.Lock()
	set()
	changed := slices.Clone(b.mu.watchers[gr])
	b.mu.Unlock()
	callAll(changed)
}

func callAll(watchers []*func()) {
	for _, changed := range watchers {
		(*changed)()
	}
}
