package report

import (
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// promises returns all promises. Targets are goals that were set before the measurement; they are not
// adjusted to it.
func promises() []Promise {
	const trimmed, compressed = subject.PackedTrimmed, subject.CompressedTrimmed
	const stock, ours = experiment.StockManager, experiment.OursManager
	const share, whole = experiment.ServerReplica, experiment.OnlyReplica
	const fair = 1.1 / experiment.Replicas // an equal share, and 10 % of it
	return []Promise{
		less("client CPU until synced", experiment.Sync, experiment.CPU,
			subject.Packed, subject.ClientGo, 12, 3.5),
		less("client CPU until synced", experiment.Sync, experiment.CPU,
			trimmed, subject.ClientGo, 12, 3.5).headline(),
		less("client CPU until synced", experiment.Sync, experiment.CPU,
			compressed, subject.ClientGo, 9, 2.5).headline(),
		most("time until synced", experiment.Sync, experiment.Wall,
			subject.Packed, subject.Stream, 1.1),
		most("time until synced", experiment.Sync, experiment.Wall, trimmed, subject.Stream, 1.1),
		less("live heap", experiment.Sync, experiment.HeapPerObject,
			trimmed, subject.ClientGo, 8, 5).headline(),
		less("live heap", experiment.Sync, experiment.HeapPerObject,
			compressed, subject.ClientGo, 20, 10).headline(),
		less("peak memory", experiment.Sync, experiment.PeakRSS,
			trimmed, subject.ClientGo, 5, 1.5).headline(),
		flat("client CPU per object until synced", experiment.Scale, experiment.CPUPerObject,
			trimmed, 1.15).guarded(2.5),
		flat("client CPU per object until synced", experiment.Scale, experiment.CPUPerObject,
			compressed, 1.15).guarded(2.5),
		flat("live heap per object", experiment.Scale, experiment.HeapPerObject, trimmed, 1.15).guarded(1.5),
		flat("live heap per object", experiment.Scale, experiment.HeapPerObject,
			compressed, 1.15).guarded(1.5),
		flat("client CPU per object of a relist", experiment.Scale, experiment.RelistCPU, trimmed, 1.15),
		flat("client CPU per object of a relist", experiment.Scale, experiment.RelistCPU, compressed, 1.15),
		flat("client CPU per update, 5,000 in a second", experiment.Scale, experiment.CPUPerEvent,
			trimmed, 1.15),
		flat("time per object to add an index", experiment.Scale, experiment.IndexAddPerObject,
			trimmed, 1.15),
		absolute("peak memory of a relist, against memory at rest", experiment.Scale, experiment.RelistPeak,
			trimmed, 1.3).guarded(2.2),
		absolute("peak memory of a relist, against memory at rest", experiment.Scale, experiment.RelistPeak,
			compressed, 1.3).guarded(2.2),

		less("client CPU per update, taking the key", experiment.UpdatesKey, experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 5, 1.1),
		less("client CPU per update of a burst, taking the key", experiment.BurstKey, experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 5, 1.5).headline(),
		less("client CPU per update, reading the object", experiment.UpdatesRead, experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 2, 0.9),
		less("client CPU per update of a burst, reading the object", experiment.BurstRead,
			experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 2, 0.9),

		less("client CPU per update beyond the stream, taking the key", experiment.UpdatesKey,
			experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 8, 0).beyond(experiment.UpdatesKey),
		less("client CPU per update beyond the stream, reading the object", experiment.UpdatesRead,
			experiment.CPUPerEvent,
			trimmed, subject.ClientGo, 4, 0).beyond(experiment.UpdatesRead),
		most("latency of 200 updates a second, median", experiment.LatencySlow, experiment.LatencyP50,
			trimmed, subject.ClientGo, 1),
		most("latency of 200 updates a second, 99 %", experiment.LatencySlow, experiment.LatencyP99,
			trimmed, subject.ClientGo, 1),
		most("latency of 200 updates a second, 99.9 %", experiment.LatencySlow, experiment.LatencyP999,
			trimmed, subject.ClientGo, 1),
		most("latency of 5,000 updates a second, median", experiment.LatencyFast, experiment.LatencyP50,
			trimmed, subject.ClientGo, 1),
		most("latency of 5,000 updates a second, 99 %", experiment.LatencyFast, experiment.LatencyP99,
			trimmed, subject.ClientGo, 1),
		most("latency of 5,000 updates a second, 99.9 %", experiment.LatencyFast, experiment.LatencyP999,
			trimmed, subject.ClientGo, 1),

		most("Get, hot", experiment.Reads, experiment.GetHot, trimmed, subject.ClientGo, 2),
		most("Get, cold, against Get and DeepCopy", experiment.Reads, experiment.GetCold,
			trimmed, subject.ClientGo, 1).against(experiment.GetCopy),
		most("by namespace, hot", experiment.Reads, experiment.NamespaceHot, trimmed, subject.ClientGo, 1),
		most("by a unique value, hot", experiment.Reads, experiment.IndexHot, trimmed, subject.ClientGo, 1),
		absolute("longest read while an index is added", experiment.Reads, experiment.IndexPause,
			trimmed, 10),
		less("live heap of an index of unique values", experiment.Reads, experiment.IndexHeap,
			trimmed, subject.ClientGo, 2, 1.5),

		less("decoding an object", experiment.Decode, experiment.DecodeObject,
			experiment.Ours, experiment.Stock, 2.5, 1.4),
		less("decoding a large object", experiment.Decode, experiment.DecodeObject,
			experiment.Ours, experiment.Stock, 2.5, 0).large(),
		less("a path to a field, same object", experiment.Paths, experiment.PathOne,
			experiment.Ours, experiment.Stock, 10, 3),
		less("a path with a filter", experiment.Paths, experiment.PathFilter,
			experiment.Ours, experiment.Stock, 8, 2.5),
		absolute("eight paths over JSON", experiment.Paths, experiment.PathEight, experiment.Ours, 4000),

		less("CPU of a manager, unstructured", experiment.ManageUnstructured, experiment.CPU,
			ours, stock, 4, 1.5).headline(),
		less("peak memory of a manager, unstructured", experiment.ManageUnstructured, experiment.PeakRSS,
			ours, stock, 3, 1.1).headline(),
		less("CPU of a manager, typed", experiment.ManageTyped, experiment.CPU, ours, stock, 2, 1),
		less("peak memory of a manager, typed", experiment.ManageTyped, experiment.PeakRSS,
			ours, stock, 1.8, 0.9),

		most("bytes received by a replica", experiment.Shard, experiment.Received,
			share, whole, fair).headline(),
		most("CPU of a replica until synced", experiment.Shard, experiment.CPU, share, whole, fair),
		most("live heap of a replica", experiment.Shard, experiment.LiveHeap, share, whole, fair),
		most("growth of a replica's process at its peak", experiment.Shard, experiment.PeakGrowth,
			share, whole, fair),

		most("client CPU of a restart until synced", experiment.Restart, experiment.CPU,
			experiment.Unchanged, subject.Packed, 0.1).guarded(0.8).headline(),
		most("bytes that a restart reads from the server", experiment.Restart, experiment.Received,
			experiment.Unchanged, subject.Packed, 0.1).guarded(0.3),
		absolute("time of a restart until synced", experiment.Restart, experiment.Wall,
			experiment.Unchanged, 0.5),

		less("CPU of printing JSON", experiment.DumpJSON, experiment.CPU,
			experiment.Ours, experiment.Kubectl, 6, 3).headline(),
		less("peak memory of printing JSON", experiment.DumpJSON, experiment.PeakRSS,
			experiment.Ours, experiment.Kubectl, 8, 1.3).headline(),
		most("CPU of printing a query as JSON", experiment.DumpJSON, experiment.CPU,
			experiment.OursQuery, experiment.Ours, 1.2).guarded(1.6),
		most("CPU of printing a query as JSON, served", experiment.DumpJSON, experiment.CPU,
			experiment.ServedQuery, experiment.ServedDump, 1.2).guarded(1.6),
		less("time of printing JSON", experiment.DumpJSON, experiment.Wall,
			experiment.Ours, experiment.Kubectl, 4, 0),

		less("client CPU until synced", experiment.Sync, experiment.CPU,
			subject.Object, subject.ClientGo, 2.5, 1.6),
		less("CPU of a manager, unstructured", experiment.ManageUnstructured, experiment.CPU,
			experiment.CompressedManager, experiment.StockManager, 4, 1.5),
		less("peak memory of a manager, unstructured", experiment.ManageUnstructured, experiment.PeakRSS,
			experiment.CompressedManager, experiment.StockManager, 4, 1.1),
		less("CPU of a manager, typed", experiment.ManageTyped, experiment.CPU,
			experiment.CompressedManager, experiment.StockManager, 3, 1),
		less("peak memory of a manager, typed", experiment.ManageTyped, experiment.PeakRSS,
			experiment.CompressedManager, experiment.StockManager, 2.5, 0.9),
		less("client CPU until synced", experiment.Sync, experiment.CPU,
			subject.CompressedTrimmed, subject.ClientGoTrimmed, 4, 2),
		less("client CPU until synced", experiment.Sync, experiment.CPU,
			subject.Metadata, subject.ClientGoMetadata, 1, 0.5),
		less("client CPU until listed", experiment.SyncList, experiment.CPU,
			subject.Packed, subject.ClientGo, 6, 2.5),
		less("peak memory of listing", experiment.SyncList, experiment.PeakRSS,
			subject.PackedTrimmed, subject.ClientGo, 3, 1.5),
		less("live heap", experiment.Sync, experiment.HeapPerObject,
			subject.Packed, subject.ClientGo, 4.5, 3.5),
		less("live heap", experiment.Sync, experiment.HeapPerObject,
			subject.AdaptiveTrimmed, subject.ClientGo, 20, 10),
		most("client CPU until synced", experiment.Sync, experiment.CPU,
			subject.AdaptiveTrimmed, subject.PackedTrimmed, 1.1).guarded(2),
		most("Get, hot", experiment.Reads, experiment.GetHot, subject.AdaptiveTrimmed, subject.ClientGo, 2),
		less("live heap of large objects", experiment.Sync, experiment.HeapPerObject,
			subject.AdaptiveTrimmed, subject.ClientGo, 15, 0).large(),
		less("client CPU until large objects are synced", experiment.Sync, experiment.CPU,
			subject.AdaptiveTrimmed, subject.ClientGo, 5, 0).large(),
		less("live heap", experiment.Sync, experiment.HeapPerObject,
			subject.Metadata, subject.ClientGoMetadata, 3, 2),
		less("memory of one of many types", experiment.Types, experiment.TypeMemory,
			subject.Packed, subject.ClientGo, 4, 2).headline(),
		less("goroutines of one of many types", experiment.Types, experiment.TypeGoroutines,
			subject.Packed, subject.ClientGo, 3.4, 2),
		less("client CPU until many types are synced", experiment.Types, experiment.CPU,
			subject.Packed, subject.ClientGo, 2, 1),
		most("time until many types are synced", experiment.Types, experiment.Wall,
			subject.Packed, subject.ClientGo, 1),
		most("CPU of many types while nothing happens", experiment.Types, experiment.IdleCPU,
			subject.Packed, subject.ClientGo, 1),
		less("CPU of printing YAML", experiment.DumpYAML, experiment.CPU,
			experiment.Ours, experiment.Kubectl, 10, 4),
		less("peak memory of printing YAML", experiment.DumpYAML, experiment.PeakRSS,
			experiment.Ours, experiment.Kubectl, 4, 1.8),
		less("decoding a list", experiment.Decode, experiment.DecodeList,
			experiment.Ours, experiment.Stock, 5, 2.5),
		less("packing an object", experiment.Decode, experiment.DecodeObject,
			experiment.OursPacked, experiment.Stock, 10, 4),
		less("a path to a field, many objects", experiment.Paths, experiment.PathField,
			experiment.Ours, experiment.Stock, 5, 2.5),
		less("eight paths over JSON", experiment.Paths, experiment.PathEight,
			experiment.Ours, experiment.Stock, 10, 4),
		most("a sorted query for few objects, against unsorted", experiment.Queries, experiment.QuerySorted,
			experiment.Ours, experiment.Ours, 2).against(experiment.QueryFew),
		most("a sorted query for few keys, against unsorted", experiment.Queries, experiment.QuerySortedKeys,
			experiment.Ours, experiment.Ours, 2).against(experiment.QueryKeys),
		flat("finding dangling references", experiment.Queries, experiment.QueryDangling,
			experiment.Ours, 1.5),
	}
}

// less promises that subject needs at least target times less than peer.
func less(title, name, metric, subject, peer string, target, margin float64) Promise {
	return Promise{
		Title: title, Subject: subject, Peer: peer,
		Over:   Key{Experiment: name, Metric: metric, Subject: peer},
		Under:  Key{Experiment: name, Metric: metric, Subject: subject},
		Target: target, Margin: margin,
	}
}

// most promises that subject needs at most target times as much as peer. It has no margin unless guarded
// adds one: elapsed time and single reads vary too much on a busy machine.
func most(title, name, metric, subject, peer string, target float64) Promise {
	p := less(title, name, metric, subject, peer, target, 0)
	p.Over, p.Under, p.AtMost = p.Under, p.Over, true
	return p
}

// flat promises that the cost of one object grows at most by target with the number of objects.
func flat(title, name, metric, subject string, target float64) Promise {
	p := most(title, name, metric, subject, subject, target)
	p.Flat = true
	return p
}

// absolute promises at most target, in the unit of the metric. It has no margin unless guarded adds one,
// because the figure depends on the machine.
func absolute(title, name, metric, subject string, target float64) Promise {
	return Promise{
		Title: title, Subject: subject, Absolute: true, AtMost: true, Target: target,
		Over: Key{Experiment: name, Metric: metric, Subject: subject},
	}
}

// against replaces the metric of the peer.
func (p Promise) against(metric string) Promise {
	p.Under.Metric = metric
	return p
}

// large selects large objects.
func (p Promise) large() Promise {
	p.Large = true
	return p
}

// guarded sets the margin for short runs.
func (p Promise) guarded(margin float64) Promise {
	p.Margin = margin
	return p
}

// headline shows the promise on the page even if it is kept.
func (p Promise) headline() Promise {
	p.Headline = true
	return p
}

// beyond subtracts the cost of the bare stream in an experiment.
func (p Promise) beyond(experiment string) Promise {
	p.Floor = Key{Experiment: experiment, Subject: subject.Stream, Metric: p.Over.Metric}
	return p
}
