// Package metrics has a Prometheus collector for the informers of a factory: their states, what they hold,
// and what has happened to them.
//
// # Usage
//
//	factory, err := dynamicinformer.New(…)
//	…
//	prometheus.MustRegister(metrics.NewCollector(factory))
//
// Several factories of one process are told apart by their names, which Options give them. Package
// controllerruntime of this project registers a collector for its cache by itself.
//
// docs/operations.md says what each metric means and what to do about it; packaging/monitoring has a
// dashboard and alerts.
//
// # Series
//
// Each view of a type has its own: what is said of a type has the labels group, version, resource and view,
// where view is empty for all objects in their usual form. They last as long as the type is followed: when
// the last handle to an informer has been released, its series end, and when the type is acquired again its
// counters go on where they were. There are about 30 for each view, six more where its content is kept beyond
// the process, and a bounded number for its handlers and indexes.
//
// # Cost
//
// A scrape looks at no object. It costs the same for a hundred as for a million of them, and keeps neither
// readers nor writers of the caches waiting (TestScrapeCostsTheSame, BenchmarkScrape).
package metrics
