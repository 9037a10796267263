package follow

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Board keeps what a source of types last told, and wakes those who wait for news of a type. It is safe for concurrent
// use.
type Board struct {
	// completed is called when the source has told all there are.
	completed func()

	mu struct {
		sync.Mutex
		types    map[schema.GroupResource]Type
		news     map[schema.GroupResource]chan struct{} // closed and removed at the next change
		complete bool
	}
}

// NewBoard returns a board on which there is nothing yet. completed is called, with no lock held, when all types are.
func NewBoard(completed func()) *Board {
	b := &Board{completed: completed}
	b.mu.types = map[schema.GroupResource]Type{}
	b.mu.news = map[schema.GroupResource]chan struct{}{}
	return b
}

// know returns what is known of a type and a channel that is closed when that changes.
func (b *Board) know(gr schema.GroupResource) (knowledge, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, exists := b.mu.types[gr]
	news, ok := b.mu.news[gr]
	if !ok {
		news = make(chan struct{})
		b.mu.news[gr] = news
	}
	return knowledge{Type: t, exists: exists, complete: b.mu.complete}, news
}

// Set records that a type exists as described.
func (b *Board) Set(t Type) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.types[t.GroupResource] = t
	b.wakeLocked(t.GroupResource)
}

// Remove records that a type exists no longer.
func (b *Board) Remove(gr schema.GroupResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.types, gr)
	b.wakeLocked(gr)
}

// Complete records that all types have been told.
func (b *Board) Complete() {
	defer b.completed()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.complete = true
	for gr := range b.mu.news {
		b.wakeLocked(gr)
	}
}

func (b *Board) wakeLocked(gr schema.GroupResource) {
	if news, ok := b.mu.news[gr]; ok {
		close(news)
		delete(b.mu.news, gr)
	}
}
