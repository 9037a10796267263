package query

import (
	"time"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// CacheSource makes a source of an informer that does not run: tests fill its cache.
type CacheSource struct{ *dynamicinformer.Informer }

func (s CacheSource) Snapshot() Snapshot {
	content := s.Informer.Snapshot()
	return informerSnapshot{content, Freshness{ResourceVersion: content.ResourceVersion(), Synced: true}}
}

// At sets a matcher's clock.
func (m *Matcher) At(now time.Time) *Matcher {
	m.clock = func() time.Time { return now }
	return m
}
