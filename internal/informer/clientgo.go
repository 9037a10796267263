package informer

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Releases of client-go add methods to these interfaces. The types here that implement them embed a nil one:
// a program with a newer client-go compiles, and a call of an added method panics. TestForeign verifies that
// no known method is missing.
type (
	foreignInformer = cache.SharedIndexInformer
	foreignIndexer  = cache.Indexer
)

// clientGoMetrics reports the changes of a partition to the provider of cache.SetInformerMetricsProvider.
// Only client-go's own queues and stores can reach this provider. An empty queue therefore measures a change
// while it processes its only item, and a bookmark of an empty store reports a version.
type clientGoMetrics struct {
	queue   *cache.RealFIFO
	version cache.ThreadSafeStore
}

// queuedChange is the item of the queue of clientGoMetrics.
var queuedChange = &metav1.ObjectMeta{Name: "change"}

// newClientGoMetrics returns nil if id is not reserved.
func newClientGoMetrics(id cache.InformerNameAndResource) *clientGoMetrics {
	if !id.Reserved() {
		return nil
	}
	return &clientGoMetrics{
		queue:   cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, Identifier: id}),
		version: cache.NewThreadSafeStore(nil, cache.Indices{}, cache.WithThreadSafeStoreMetrics(id, nil)),
	}
}

// measure applies a change to the store, and reports its duration and then the version of the informer.
func (p *partition) measure(apply func() error) error {
	m := p.clientGoMetrics
	if m == nil || m.queue.Add(queuedChange) != nil {
		return apply()
	}
	_, err := m.queue.Pop(func(any, bool) error { return apply() })
	if version := p.informer.LastSyncResourceVersion(); version != "" {
		m.version.Bookmark(version)
	}
	return err
}

// ReportMetrics reports to the provider of cache.SetInformerMetricsProvider under id, unless it is not
// reserved. It must be called before the first run.
func (i *Informer) ReportMetrics(id cache.InformerNameAndResource) { i.metricsID = id }
