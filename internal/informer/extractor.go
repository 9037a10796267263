package informer

import "github.com/crdcache/crdcache/internal/store"

// AddExtractor adds the indexes of an extractor as AddIndexers adds index functions. Those whose names are given
// it replaces, at the moment when the new ones are complete.
func (i *Informer) AddExtractor(e store.Extractor, replaced ...string) error {
	if i.IsStopped() {
		return &refusal{text: "indexes were not added because it has stopped already", cause: ErrStopped}
	}
	return i.store.AddExtractor(e, replaced...)
}

// RemoveIndexes removes indexes by name, whoever added them; names that there are none of do nothing.
func (i *Informer) RemoveIndexes(names ...string) { i.store.RemoveIndexes(names...) }

// Snapshot returns the present content, which it never changes.
func (i *Informer) Snapshot() *store.Snapshot { return i.store.Snapshot() }
