package dynamicinformer

import (
	"context"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// MemoryStats returns the current memory of the caches. Its cost grows with the number of types, not of
// objects, and it blocks neither readers nor writers.
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

// Compress compresses all objects with StorageAdaptive that are not in frequent use, and returns when that is
// done or with the cause of ctx. It is for programs that expect no reads soon, and for measurements. Readers
// and the informer continue meanwhile. It does nothing in other storage modes, for an informer that does not
// run, or for too few objects to train the compressor.
func (i *Informer) Compress(ctx context.Context) error {
	return i.source.sweeper.Compress(ctx, i.core.Store())
}
