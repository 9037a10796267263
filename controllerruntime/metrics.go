package controllerruntime

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crdcache/crdcache/metrics"
)

// maxNames is the number of caches in a process with distinct names in metrics.
const maxNames = 100

// registerMetrics registers the metrics of the factory. It logs errors: a cache without metrics still
// starts.
func (c *Cache) registerMetrics() (unregister func()) {
	registerer := c.options.Metrics
	if registerer == nil {
		if c.options.Factory != nil {
			return func() {}
		}
		registerer = ctrlmetrics.Registry
	}
	collector, err := register(registerer, func(name string) prometheus.Collector {
		return metrics.NewCollector(c.factory, metrics.Options{Name: name})
	}, c.options.Name)
	if err != nil {
		ctrllog.Log.WithName("cache").Error(err, "Failed to register the metrics of the cache")
		return func() {}
	}
	return func() { registerer.Unregister(collector) }
}

// register registers a collector under name, or under name with the first free number from 2 on.
func register(registerer prometheus.Registerer, collector func(name string) prometheus.Collector,
	name string) (prometheus.Collector, error) {
	for number := 1; number <= maxNames; number++ {
		tried := name
		if number > 1 {
			tried += strconv.Itoa(number)
		}
		made := collector(tried)
		err := registerer.Register(made)
		if err == nil {
			return made, nil
		}
		if _, taken := errors.AsType[prometheus.AlreadyRegisteredError](err); !taken {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d caches have registered metrics under the name %q", maxNames, name)
}
