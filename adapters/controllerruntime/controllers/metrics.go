package controllers

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The names resemble controller-runtime's. Its metrics have all controllers as one, "run-time".
var (
	queueLengthDesc = prometheus.NewDesc("crdcache_controller_queue_length",
		"Number of requests that wait for a reconcile, without delayed ones.", []string{"controller"}, nil)
	activeDesc = prometheus.NewDesc("crdcache_controller_active_reconciles",
		"Number of running reconciles.", []string{"controller"}, nil)
	reconcilesDesc = prometheus.NewDesc("crdcache_controller_reconciles_total",
		"Number of reconciles by result: success, error, requeue or requeue_after.",
		[]string{"controller", "result"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Controllers) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- queueLengthDesc
	descriptions <- activeDesc
	descriptions <- reconcilesDesc
}

// Collect implements prometheus.Collector. A controller has series from Ensure to Stop.
func (c *Controllers) Collect(metrics chan<- prometheus.Metric) {
	add := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	for _, s := range c.All() {
		name := strings.ToValidUTF8(s.Name, "\uFFFD")
		add(queueLengthDesc, prometheus.GaugeValue, float64(s.QueueLength), name)
		add(activeDesc, prometheus.GaugeValue, float64(s.ActiveReconciles), name)
		for result, n := range s.Reconciles {
			add(reconcilesDesc, prometheus.CounterValue, float64(n), name, result)
		}
	}
}
