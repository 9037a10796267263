// Package statemetrics compares the metrics of index configs with kube-state-metrics. It is a separate
// module, because it depends on kube-state-metrics.
package statemetrics
