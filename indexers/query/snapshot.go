package query

import "github.com/crdcache/crdcache/internal/store"

// storeSnapshot shows a snapshot of our own store.
type storeSnapshot struct {
	*store.Snapshot
	stamp Stamp
}

func (s storeSnapshot) Stamp() Stamp { return s.stamp }

func (s storeSnapshot) Index(name string) (Index, bool) {
	view, ok := s.Snapshot.Index(name)
	return view, ok
}
