package promise

import (
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/result"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// Table returns all promises, in the order of the report. The two numbers are what is promised, and where a short
// run on a busy machine fails.
func Table() []Promise {
	return []Promise{
		less("client CPU until synced", experiment.Sync, experiment.CPU, subject.Object, subject.ClientGo, 2.5, 1.6),
		less("client CPU until synced", experiment.Sync, experiment.CPU, subject.Packed, subject.ClientGo, 7, 3.5),
		less("client CPU until synced", experiment.Sync, experiment.CPU, subject.PackedTrimmed, subject.ClientGoTrimmed, 7, 3.5),
		less("client CPU until synced", experiment.Sync, experiment.CPU, subject.CompressedTrimmed, subject.ClientGoTrimmed, 4, 2),
		less("client CPU until synced", experiment.Sync, experiment.CPU, subject.Metadata, subject.ClientGoMetadata, 1, 0.5),
		most("time until synced", experiment.Sync, experiment.Wall, subject.Packed, subject.Stream, 1.25),
		less("client CPU until listed", experiment.SyncList, experiment.CPU, subject.Packed, subject.ClientGo, 6, 2.5),
		less("peak memory of listing", experiment.SyncList, experiment.PeakRSS, subject.PackedTrimmed, subject.ClientGo, 3, 1.5),
		flat("client CPU per object until synced", experiment.Sync, experiment.CPUPerObject, subject.Packed, 1.15),
		flat("client CPU per object until synced", experiment.Sync, experiment.CPUPerObject, subject.CompressedTrimmed, 1.15),

		less("live heap", experiment.Sync, experiment.HeapPerObject, subject.Packed, subject.ClientGo, 4.5, 3.5),
		less("live heap", experiment.Sync, experiment.HeapPerObject, subject.PackedTrimmed, subject.ClientGo, 8, 5),
		less("live heap", experiment.Sync, experiment.HeapPerObject, subject.CompressedTrimmed, subject.ClientGo, 20, 10),
		less("live heap", experiment.Sync, experiment.HeapPerObject, subject.Metadata, subject.ClientGoMetadata, 3, 2),
		less("peak memory", experiment.Sync, experiment.PeakRSS, subject.PackedTrimmed, subject.ClientGo, 5, 1.5),

		less("client CPU per update, taking the key", experiment.UpdatesKey, experiment.CPUPerEvent, subject.PackedTrimmed, subject.ClientGo, 2, 1.1),
		less("client CPU per update, reading the object", experiment.UpdatesRead, experiment.CPUPerEvent, subject.PackedTrimmed, subject.ClientGo, 1.5, 0.9),

		less("look-up by a unique value, hot", experiment.Reads, experiment.IndexHot, subject.Object, subject.ClientGo, 1, 0.4),
		less("look-up by a unique value, hot", experiment.Reads, experiment.IndexHot, subject.Packed, subject.ClientGo, 1, 0.4),
		less("live heap of an index of unique values", experiment.Reads, experiment.IndexHeap, subject.Packed, subject.ClientGo, 3, 2),
		less("longest read while an index is added", experiment.Reads, experiment.IndexPause, subject.Packed, subject.ClientGo, 1, 0),

		less("CPU of printing JSON", experiment.DumpJSON, experiment.CPU, experiment.Ours, experiment.Kubectl, 10, 4),
		less("peak memory of printing JSON", experiment.DumpJSON, experiment.PeakRSS, experiment.Ours, experiment.Kubectl, 3, 1.3),
		less("CPU of printing YAML", experiment.DumpYAML, experiment.CPU, experiment.Ours, experiment.Kubectl, 10, 4),
		less("peak memory of printing YAML", experiment.DumpYAML, experiment.PeakRSS, experiment.Ours, experiment.Kubectl, 4, 1.8),

		less("decoding an object", experiment.Decode, experiment.DecodeObject, experiment.Ours, experiment.Stock, 2.5, 1.4),
		less("decoding a list", experiment.Decode, experiment.DecodeList, experiment.Ours, experiment.Stock, 5, 2.5),
		less("taking in an object", experiment.Decode, experiment.DecodeObject, experiment.OursPacked, experiment.Stock, 10, 4),
		less("a path to a field", experiment.Paths, experiment.PathField, experiment.Ours, experiment.Stock, 5, 2.5),
		less("a path with a filter", experiment.Paths, experiment.PathFilter, experiment.Ours, experiment.Stock, 5, 2.5),
		less("eight paths over JSON", experiment.Paths, experiment.PathEight, experiment.Ours, experiment.Stock, 10, 4),
	}
}

// less promises that who needs target times less than against.
func less(what, name, metric, who, against string, target, margin float64) Promise {
	return Promise{
		What: what, Who: who, Against: against,
		Over:   result.Key{Experiment: name, Metric: metric, Subject: against},
		Under:  result.Key{Experiment: name, Metric: metric, Subject: who},
		Target: target, Margin: margin,
	}
}

// most promises that who needs at most target times as much as against. Nothing guards it: elapsed time on a busy
// machine says too little, and a short run has one number of objects only.
func most(what, name, metric, who, against string, target float64) Promise {
	p := less(what, name, metric, who, against, target, 0)
	p.Over, p.Under, p.AtMost = p.Under, p.Over, true
	return p
}

// flat promises that with more objects who needs at most target times as much for each.
func flat(what, name, metric, who string, target float64) Promise {
	p := most(what, name, metric, who, who, target)
	p.Flat = true
	return p
}
