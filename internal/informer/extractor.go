package informer

import "github.com/crdcache/crdcache/internal/store"

// AddExtractor adds the indexes of an extractor as AddIndexers adds index functions.
func (i *Informer) AddExtractor(e store.Extractor) error {
	if i.IsStopped() {
		return &refusal{text: "indexes were not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddExtractor(e)
}

// RemoveIndexes removes indexes by name, whoever added them; names that there are none of do nothing.
func (i *Informer) RemoveIndexes(names ...string) { i.store.RemoveIndexes(names...) }

// Snapshot returns the present content, which it never changes.
func (i *Informer) Snapshot() *store.Snapshot { return i.store.Snapshot() }
