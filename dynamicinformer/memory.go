package dynamicinformer

import (
	"context"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// MemoryStats tells what the caches occupy at this moment, at a cost that grows with the number of types, not
// of objects. It keeps neither readers nor writers waiting.
func (f *Factory) MemoryStats() status.MemoryStats {
	stats := status.MemoryStats{Budget: f.options.MemoryBudget}
	for _, some := range f.followed() {
		for _, i := range some.informers {
			measured := i.core.Measure()
			stats.Used += measured.Bytes()
			stats.Compressed += measured.CompressedBytes
			if i.core.Store().Adaptive() != nil {
				stats.Compressible += measured.Compressible()
			}
		}
	}
	if stats.Budget > 0 {
		stats.OverBudget = max(0, stats.Used-stats.Budget)
	}
	return stats
}

// Compress compresses what StorageAdaptive has not compressed yet, but for what has been in use for some
// time, and returns when that is done, or with the context's cause. Nobody has to call it: it is for programs
// that know that nothing is going to be read soon, and for those that measure. Readers and the informer go on
// meanwhile. It does nothing for other modes of storage, for an informer that does not run, and for fewer
// objects than the compressor has to learn from.
func (i *Informer) Compress(ctx context.Context) error {
	return i.source.sweeper.Compress(ctx, i.core.Store())
}
