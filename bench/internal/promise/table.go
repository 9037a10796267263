package promise

import (
	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/bench/internal/result"
	"github.com/crdcache/crdcache/bench/internal/subject"
)

// Table returns all promises, in the order of the report.
func Table() []Promise {
	return []Promise{
		less("CPU until synced", experiment.Sync, experiment.CPU, subject.Object, 3, 1.8),
		less("live heap", experiment.Sync, experiment.HeapPerObject, subject.Object, 1.2, 0.9),
	}
}

// less promises that a subject takes target times less than client-go's dynamicinformer.
func less(text, experimentName, metric, name string, target, margin float64) Promise {
	return Promise{
		Text:   text + ", " + name + " against client-go's dynamicinformer",
		Over:   result.Key{Experiment: experimentName, Metric: metric, Subject: subject.ClientGo},
		Under:  result.Key{Experiment: experimentName, Metric: metric, Subject: name},
		Target: target, Margin: margin,
	}
}
