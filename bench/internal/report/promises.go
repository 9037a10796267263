package report

import (
	"github.com/crdcache/crdcache/bench/internal/experiment"
)

// promises returns all promises. Targets are goals that were set before the measurement; they are not
// adjusted to it.
func promises() []Promise {
	const trimmed, compressed = experiment.PackedTrimmed, experiment.CompressedTrimmed
	const stock, ours = experiment.StockManager, experiment.OursManager
	const share, whole = experiment.ServerReplica, experiment.OnlyReplica
	const fair = 1.1 / experiment.Replicas // an equal share, and 10 % of it
	return []Promise{
		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			experiment.Packed, experiment.ClientGo, 12, 3.5),
		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			trimmed, experiment.ClientGo, 12, 3.5).headline(),
		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			compressed, experiment.ClientGo, 9, 2.5).headline(),
		promiseAtMost("time until synced", experiment.Sync, experiment.Wall,
			experiment.Packed, experiment.Stream, 1.1),
		promiseAtMost("time until synced", experiment.Sync, experiment.Wall, trimmed, experiment.Stream, 1.1),
		promiseLess("live heap", experiment.Sync, experiment.HeapPerObject,
			trimmed, experiment.ClientGo, 8, 5).headline(),
		promiseLess("live heap", experiment.Sync, experiment.HeapPerObject,
			compressed, experiment.ClientGo, 20, 10).headline(),
		promiseLess("peak memory", experiment.Sync, experiment.PeakRSS,
			trimmed, experiment.ClientGo, 5, 1.5).headline(),
		promiseFlat("client CPU per object until synced", experiment.Scale, experiment.CPUPerObject,
			trimmed, 1.15).withMargin(2.5),
		promiseFlat("client CPU per object until synced", experiment.Scale, experiment.CPUPerObject,
			compressed, 1.15).withMargin(2.5),
		promiseFlat("live heap per object", experiment.Scale, experiment.HeapPerObject, trimmed, 1.15).withMargin(1.5),
		promiseFlat("live heap per object", experiment.Scale, experiment.HeapPerObject,
			compressed, 1.15).withMargin(1.5),
		promiseFlat("client CPU per object of a relist", experiment.Scale, experiment.RelistCPU, trimmed, 1.15),
		promiseFlat("client CPU per object of a relist", experiment.Scale, experiment.RelistCPU, compressed, 1.15),
		promiseFlat("client CPU per update, 5,000 in a second", experiment.Scale, experiment.CPUPerEvent,
			trimmed, 1.15),
		promiseFlat("time per object to add an index", experiment.Scale, experiment.IndexAddPerObject,
			trimmed, 1.15),
		promiseAbsolute("peak memory of a relist, against memory at rest", experiment.Scale, experiment.RelistPeak,
			trimmed, 1.3).withMargin(2.2),
		promiseAbsolute("peak memory of a relist, against memory at rest", experiment.Scale, experiment.RelistPeak,
			compressed, 1.3).withMargin(2.2),

		promiseLess("client CPU per update, taking the key", experiment.UpdatesKey, experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 5, 1.1),
		promiseLess("client CPU per update of a burst, taking the key", experiment.BurstKey, experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 5, 1.5).headline(),
		promiseLess("client CPU per update, reading the object", experiment.UpdatesRead, experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 2, 0.9),
		promiseLess("client CPU per update of a burst, reading the object", experiment.BurstRead,
			experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 2, 0.9),

		promiseLess("client CPU per update beyond the stream, taking the key", experiment.UpdatesKey,
			experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 8, 0).withoutStreamCost(experiment.UpdatesKey),
		promiseLess("client CPU per update beyond the stream, reading the object", experiment.UpdatesRead,
			experiment.CPUPerEvent,
			trimmed, experiment.ClientGo, 4, 0).withoutStreamCost(experiment.UpdatesRead),
		promiseAtMost("latency of 200 updates a second, median", experiment.LatencySlow, experiment.LatencyP50,
			trimmed, experiment.ClientGo, 1),
		promiseAtMost("latency of 200 updates a second, 99 %", experiment.LatencySlow, experiment.LatencyP99,
			trimmed, experiment.ClientGo, 1),
		promiseAtMost("latency of 200 updates a second, 99.9 %", experiment.LatencySlow, experiment.LatencyP999,
			trimmed, experiment.ClientGo, 1),
		promiseAtMost("latency of 5,000 updates a second, median", experiment.LatencyFast, experiment.LatencyP50,
			trimmed, experiment.ClientGo, 1),
		promiseAtMost("latency of 5,000 updates a second, 99 %", experiment.LatencyFast, experiment.LatencyP99,
			trimmed, experiment.ClientGo, 1),
		promiseAtMost("latency of 5,000 updates a second, 99.9 %", experiment.LatencyFast, experiment.LatencyP999,
			trimmed, experiment.ClientGo, 1),

		promiseAtMost("Get, hot", experiment.Reads, experiment.GetHot, trimmed, experiment.ClientGo, 1.2),
		promiseAtMost("Get, cold, against Get and DeepCopy", experiment.Reads, experiment.GetCold,
			trimmed, experiment.ClientGo, 1).peerMetric(experiment.GetCopy),
		promiseAtMost("by namespace, hot", experiment.Reads, experiment.NamespaceHot, trimmed, experiment.ClientGo, 1),
		promiseAtMost("by a unique value, hot", experiment.Reads, experiment.IndexHot, trimmed, experiment.ClientGo, 1),
		promiseAbsolute("longest read while an index is added", experiment.Reads, experiment.IndexPause,
			trimmed, 10),
		promiseLess("live heap of an index of unique values", experiment.Reads, experiment.IndexHeap,
			trimmed, experiment.ClientGo, 2, 1.5),

		promiseLess("decoding an object", experiment.Decode, experiment.DecodeObject,
			experiment.Ours, experiment.Stock, 2.5, 1.4),
		promiseLess("decoding a large object", experiment.Decode, experiment.DecodeObject,
			experiment.Ours, experiment.Stock, 2.5, 0).large(),
		promiseLess("a path to a field, same object", experiment.Paths, experiment.PathFieldSameObject,
			experiment.Ours, experiment.Stock, 10, 3),
		promiseLess("a path with a filter", experiment.Paths, experiment.PathFilter,
			experiment.Ours, experiment.Stock, 8, 2.5),
		promiseAbsolute("eight paths over JSON", experiment.Paths, experiment.PathEight, experiment.Ours, 4000),

		promiseLess("CPU of a manager, unstructured", experiment.ManageUnstructured, experiment.CPU,
			ours, stock, 4, 1.5).headline(),
		promiseLess("peak memory of a manager, unstructured", experiment.ManageUnstructured, experiment.PeakRSS,
			ours, stock, 3, 1.1).headline(),
		promiseLess("CPU of a manager, typed", experiment.ManageTyped, experiment.CPU, ours, stock, 2, 1),
		promiseLess("peak memory of a manager, typed", experiment.ManageTyped, experiment.PeakRSS,
			ours, stock, 1.8, 0.9),

		promiseLess("CPU of an operator until idle", experiment.Operator, experiment.CPU, ours, stock, 9, 3).headline(),
		promiseLess("peak memory of an operator until idle", experiment.Operator, experiment.PeakRSS,
			ours, stock, 5, 1.2).headline(),
		promiseAtMost("CPU of an operator per update that it ignores", experiment.Operator, experiment.CPUPerEvent,
			ours, experiment.Stream, 1.3).headline(),

		promiseAtMost("bytes received by a replica", experiment.Shard, experiment.Received,
			share, whole, fair).headline(),
		promiseAtMost("CPU of a replica until synced", experiment.Shard, experiment.CPU, share, whole, fair),
		promiseAtMost("live heap of a replica", experiment.Shard, experiment.LiveHeap, share, whole, fair),
		promiseAtMost("growth of a replica's process at its peak", experiment.Shard, experiment.PeakGrowth,
			share, whole, fair),

		promiseAtMost("client CPU of a restart until synced", experiment.Restart, experiment.CPU,
			experiment.Unchanged, experiment.Packed, 0.1).withMargin(0.8).headline(),
		promiseAtMost("bytes that a restart reads from the server", experiment.Restart, experiment.Received,
			experiment.Unchanged, experiment.Packed, 0.1).withMargin(0.3),
		promiseAbsolute("time of a restart until synced", experiment.Restart, experiment.Wall,
			experiment.Unchanged, 0.5),

		promiseLess("CPU of printing JSON", experiment.DumpJSON, experiment.CPU,
			experiment.Ours, experiment.Kubectl, 6, 3).headline(),
		promiseLess("peak memory of printing JSON", experiment.DumpJSON, experiment.PeakRSS,
			experiment.Ours, experiment.Kubectl, 8, 1.3).headline(),
		promiseAtMost("CPU of printing a query as JSON", experiment.DumpJSON, experiment.CPU,
			experiment.OursQuery, experiment.Ours, 1.2).withMargin(1.6),
		promiseAtMost("CPU of printing a query as JSON, served", experiment.DumpJSON, experiment.CPU,
			experiment.ServedQuery, experiment.ServedDump, 1.2).withMargin(1.6),
		promiseLess("time of printing JSON", experiment.DumpJSON, experiment.Wall,
			experiment.Ours, experiment.Kubectl, 4, 0),

		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			experiment.Object, experiment.ClientGo, 2.5, 1.6),
		promiseLess("CPU of a manager, unstructured", experiment.ManageUnstructured, experiment.CPU,
			experiment.CompressedManager, experiment.StockManager, 4, 1.5),
		promiseLess("peak memory of a manager, unstructured", experiment.ManageUnstructured, experiment.PeakRSS,
			experiment.CompressedManager, experiment.StockManager, 4, 1.1),
		promiseLess("CPU of a manager, typed", experiment.ManageTyped, experiment.CPU,
			experiment.CompressedManager, experiment.StockManager, 3, 1),
		promiseLess("peak memory of a manager, typed", experiment.ManageTyped, experiment.PeakRSS,
			experiment.CompressedManager, experiment.StockManager, 2.5, 0.9),
		promiseAtMost("live heap", experiment.Sync, experiment.HeapPerObject,
			experiment.Kept, experiment.PackedTrimmed, 0.6),
		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			experiment.CompressedTrimmed, experiment.ClientGoTrimmed, 4, 2),
		promiseLess("client CPU until synced", experiment.Sync, experiment.CPU,
			experiment.Metadata, experiment.ClientGoMetadata, 1, 0.5),
		promiseLess("client CPU until listed", experiment.SyncList, experiment.CPU,
			experiment.Packed, experiment.ClientGo, 6, 2.5),
		promiseLess("peak memory of listing", experiment.SyncList, experiment.PeakRSS,
			experiment.PackedTrimmed, experiment.ClientGo, 3, 1.5),
		promiseLess("live heap", experiment.Sync, experiment.HeapPerObject,
			experiment.Packed, experiment.ClientGo, 4.5, 3.5),
		promiseLess("live heap", experiment.Sync, experiment.HeapPerObject,
			experiment.AdaptiveTrimmed, experiment.ClientGo, 20, 10),
		promiseAtMost("client CPU until synced", experiment.Sync, experiment.CPU,
			experiment.AdaptiveTrimmed, experiment.PackedTrimmed, 1.1).withMargin(2),
		promiseAtMost("Get, hot", experiment.Reads, experiment.GetHot, experiment.AdaptiveTrimmed,
			experiment.ClientGo, 1.2),
		promiseLess("live heap of large objects", experiment.Sync, experiment.HeapPerObject,
			experiment.AdaptiveTrimmed, experiment.ClientGo, 15, 0).large(),
		promiseLess("client CPU until large objects are synced", experiment.Sync, experiment.CPU,
			experiment.AdaptiveTrimmed, experiment.ClientGo, 5, 0).large(),
		promiseLess("live heap", experiment.Sync, experiment.HeapPerObject,
			experiment.Metadata, experiment.ClientGoMetadata, 3, 2),
		promiseLess("memory of one of many types", experiment.Types, experiment.TypeMemory,
			experiment.Packed, experiment.ClientGo, 4, 2).headline(),
		promiseLess("goroutines of one of many types", experiment.Types, experiment.TypeGoroutines,
			experiment.Packed, experiment.ClientGo, 3.4, 2),
		promiseLess("client CPU until many types are synced", experiment.Types, experiment.CPU,
			experiment.Packed, experiment.ClientGo, 2, 1),
		promiseAtMost("time until many types are synced", experiment.Types, experiment.Wall,
			experiment.Packed, experiment.ClientGo, 1),
		promiseAtMost("CPU of many types while nothing happens", experiment.Types, experiment.IdleCPU,
			experiment.Packed, experiment.ClientGo, 1),
		promiseLess("CPU of printing YAML", experiment.DumpYAML, experiment.CPU,
			experiment.Ours, experiment.Kubectl, 10, 4),
		promiseLess("peak memory of printing YAML", experiment.DumpYAML, experiment.PeakRSS,
			experiment.Ours, experiment.Kubectl, 4, 1.8),
		promiseLess("decoding a list", experiment.Decode, experiment.DecodeList,
			experiment.Ours, experiment.Stock, 5, 2.5),
		promiseLess("packing an object", experiment.Decode, experiment.DecodeObject,
			experiment.OursPacked, experiment.Stock, 10, 4),
		promiseLess("a path to a field, many objects", experiment.Paths, experiment.PathField,
			experiment.Ours, experiment.Stock, 5, 2.5),
		promiseLess("eight paths over JSON", experiment.Paths, experiment.PathEight,
			experiment.Ours, experiment.Stock, 10, 4),
		promiseAtMost("a sorted query for few objects, against unsorted", experiment.Queries, experiment.QuerySorted,
			experiment.Ours, experiment.Ours, 2).peerMetric(experiment.QueryFew),
		promiseAtMost("a sorted query for few keys, against unsorted", experiment.Queries, experiment.QuerySortedKeys,
			experiment.Ours, experiment.Ours, 2).peerMetric(experiment.QueryKeys),
		promiseFlat("finding dangling references", experiment.Queries, experiment.QueryDangling,
			experiment.Ours, 1.5),
	}
}

// promiseLess promises that subject needs at least target times less than peer.
func promiseLess(title, name, metric, subject, peer string, target, margin float64) Promise {
	return Promise{
		Title: title, Subject: subject, Peer: peer,
		Over:   Key{Experiment: name, Metric: metric, Subject: peer},
		Under:  Key{Experiment: name, Metric: metric, Subject: subject},
		Target: target, Margin: margin,
	}
}

// promiseAtMost promises that subject needs at most target times as much as peer. It has no margin unless
// guarded adds one: elapsed time and single reads vary too much on a busy machine.
func promiseAtMost(title, name, metric, subject, peer string, target float64) Promise {
	p := promiseLess(title, name, metric, subject, peer, target, 0)
	p.Over, p.Under, p.AtMost = p.Under, p.Over, true
	return p
}

// promiseFlat promises that the cost of one object grows at most by target with the number of objects.
func promiseFlat(title, name, metric, subject string, target float64) Promise {
	p := promiseAtMost(title, name, metric, subject, subject, target)
	p.Flat = true
	return p
}

// promiseAbsolute promises at most target, in the unit of the metric. It has no margin unless guarded adds
// one, because the figure depends on the machine.
func promiseAbsolute(title, name, metric, subject string, target float64) Promise {
	return Promise{
		Title: title, Subject: subject, Absolute: true, AtMost: true, Target: target,
		Over: Key{Experiment: name, Metric: metric, Subject: subject},
	}
}

// peerMetric replaces the metric of the peer.
func (p Promise) peerMetric(metric string) Promise {
	p.Under.Metric = metric
	return p
}

// large selects large objects.
func (p Promise) large() Promise {
	p.Large = true
	return p
}

// withMargin sets the margin for short runs.
func (p Promise) withMargin(margin float64) Promise {
	p.Margin = margin
	return p
}

// headline shows the promise on the page even if it is kept.
func (p Promise) headline() Promise {
	p.Headline = true
	return p
}

// withoutStreamCost subtracts the cost of the bare stream in an experiment.
func (p Promise) withoutStreamCost(name string) Promise {
	p.Floor = Key{Experiment: name, Subject: experiment.Stream, Metric: p.Over.Metric}
	return p
}
