// Package metrics has a Prometheus collector for the informers of a factory: their states, sizes and events.
//
// # Usage
//
//	factory, err := dynamicinformer.New(…)
//	…
//	prometheus.MustRegister(metrics.NewCollector(factory))
//
// Options.Name distinguishes several factories of one process. Package controllerruntime of this project
// registers a collector for its cache by itself. NewGroupCollector serves a dynamicinformer.Group: one
// collector for many clusters, with the label cluster.
//
// docs/operations.md explains each metric and how to react to it. serving/packaging/monitoring has a
// dashboard and alerts.
//
// Each combination of a type and its informer options has its own series, with the labels group, version,
// resource and view, which describes the options (see status.Status.Options). The series end with the release
// of the last handle to an informer; when the type is acquired again, its counters continue.
//
// A scrape visits no object, and blocks neither readers nor writers (TestScrapeCostsTheSame).
package metrics
