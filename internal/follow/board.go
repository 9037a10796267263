package follow

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Board keeps what a source of types last told, and wakes those who wait for news of a type. It is safe for
// concurrent use.
type Board struct {
	// completed is called when the source has told all there are.
	completed func()

	mu struct {
		sync.Mutex
		types map[schema.GroupResource]typesource.Type
		// watchers are called at each change.
		watchers map[schema.GroupResource][]*func()
		news     map[schema.GroupResource]chan struct{} // closed and removed at the next change
		unknown  map[schema.GroupVersion]error          // the group versions that could not be discovered
		complete bool
	}
}

var _ typesource.Listener = (*Board)(nil)

// NewBoard returns a board on which there is nothing yet. completed is called, with no lock held, when all
// types are.
func NewBoard(completed func()) *Board {
	b := &Board{completed: completed}
	b.mu.types = map[schema.GroupResource]typesource.Type{}
	b.mu.watchers = map[schema.GroupResource][]*func(){}
	b.mu.news = map[schema.GroupResource]chan struct{}{}
	return b
}

// know returns what is known of a type and a channel that is closed when that changes.
func (b *Board) know(gr schema.GroupResource) (*knowledge, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, exists := b.mu.types[gr]
	news, ok := b.mu.news[gr]
	if !ok {
		news = make(chan struct{})
		b.mu.news[gr] = news
	}
	return &knowledge{Type: t, exists: exists, complete: b.mu.complete, unknown: b.mu.unknown}, news
}

// notify has changed called, with no lock held, after each change of what is known of a type, until stop is
// called; a call may be under way then.
func (b *Board) notify(gr schema.GroupResource, changed func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.watchers[gr] = append(b.mu.watchers[gr], &changed)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		left := slices.DeleteFunc(b.mu.watchers[gr], func(f *func()) bool { return f == &changed })
		if b.mu.watchers[gr] = left; len(left) == 0 {
			delete(b.mu.watchers, gr)
		}
	}
}

// SetType implements typesource.Listener.
func (b *Board) SetType(t typesource.Type) {
	b.change(t.GroupResource, func() { b.mu.types[t.GroupResource] = t })
}

// RemoveType implements typesource.Listener.
func (b *Board) RemoveType(gr schema.GroupResource) {
	b.change(gr, func() { delete(b.mu.types, gr) })
}

// SetUnknown implements typesource.Listener.
func (b *Board) SetUnknown(unknown map[schema.GroupVersion]error) {
	b.changeAll(func() { b.mu.unknown = unknown })
}

// SetComplete implements typesource.Listener.
func (b *Board) SetComplete() {
	defer b.completed()
	b.changeAll(func() { b.mu.complete = true })
}

// changeAll changes the knowledge of every type, and wakes all waiters.
func (b *Board) changeAll(set func()) {
	b.mu.Lock()
	set()
	var changed []func()
	for gr := range b.mu.news {
		b.wakeLocked(gr)
	}
	for gr := range b.mu.watchers {
		changed = append(changed, b.watchersLocked(gr)...)
	}
	b.mu.Unlock()
	call(changed)
}

// change changes what is known of a type, and tells who waits for that.
func (b *Board) change(gr schema.GroupResource, set func()) {
	b.mu.Lock()
	set()
	b.wakeLocked(gr)
	changed := b.watchersLocked(gr)
	b.mu.Unlock()
	call(changed)
}

func (b *Board) wakeLocked(gr schema.GroupResource) {
	if news, ok := b.mu.news[gr]; ok {
		close(news)
		delete(b.mu.news, gr)
	}
}

func (b *Board) watchersLocked(gr schema.GroupResource) []func() {
	watchers := make([]func(), 0, len(b.mu.watchers[gr]))
	for _, changed := range b.mu.watchers[gr] {
		watchers = append(watchers, *changed)
	}
	return watchers
}

func call(functions []func()) {
	for _, f := range functions {
		f()
	}
}
