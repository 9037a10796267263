package query

import (
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// CacheSource makes a source of the cache of an informer that nobody runs: tests fill it.
type CacheSource struct{ *dynamicinformer.Informer }

// Snapshot implements Source.
func (s CacheSource) Snapshot() Snapshot {
	content := s.Informer.Snapshot()
	return informerSnapshot{content, Stamp{ResourceVersion: content.ResourceVersion(), Synced: true}}
}

// At makes a matcher take a time for the present.
func (m *Matcher) At(now time.Time) *Matcher {
	m.clock = func() time.Time { return now }
	return m
}
