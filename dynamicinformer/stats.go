package dynamicinformer

import (
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Stats returns the memory of the cache and counts of its events. It visits every object, about 10 ms for
// 100,000, and blocks neither readers nor the informer.
func (i *Informer) Stats() status.Stats {
	inside := i.core.Stats()
	stats := status.Stats{
		GVR: i.gvr, Storage: i.options.Storage.effective().String(), Objects: inside.Objects,
		Compressed:  inside.Compressed,
		ObjectBytes: inside.ObjectBytes, CompressedBytes: inside.CompressedBytes,
		TableBytes: inside.TableBytes, Hits: inside.Hits, Misses: inside.Misses,
		View: i.options.describe(), Events: status.EventStats(i.core.Events()),
		ListDuration: i.Status().ListDuration,
	}
	if i.shard != nil {
		stats.ShardDropped = i.shard.Dropped()
	}
	for _, x := range inside.Indexes {
		stats.Indexes = append(stats.Indexes, status.IndexStats{Name: x.Name, Values: x.Values,
			Entries: x.Entries, Bytes: x.Bytes})
	}
	return stats
}

// Stats returns Informer.Stats of each informer, ordered by group, resource, version and view.
func (f *Factory) Stats() []status.Stats {
	all := make([]status.Stats, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer.Stats())
	}
	return all
}
