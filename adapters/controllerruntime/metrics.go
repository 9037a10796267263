package controllerruntime

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crdcache/crdcache/adapters/metrics"
)

// registerMetrics registers the metrics of the factory. It logs errors: a cache without metrics still starts.
func (c *Cache) registerMetrics() (unregister func()) {
	registerer := c.options.Metrics
	if registerer == nil {
		if c.options.Factory != nil || c.options.Group != nil {
			return func() {}
		}
		registerer = ctrlmetrics.Registry
	}
	unregister, err := register(registerer, func(name string) prometheus.Collector {
		return metrics.NewCollector(c.factory, metrics.Options{Name: name})
	}, c.options.Name)
	if err != nil {
		ctrllog.Log.WithName("cache").Error(err, "Failed to register the metrics of the cache")
		return func() {}
	}
	return unregister
}

// numberedNames returns name, and then name with a number from 2 to 10,000, as in "name (2)".
func numberedNames(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n, next := 2, name; n <= 10_000 && yield(next); n++ {
			next = fmt.Sprintf("%s (%d)", name, n)
		}
	}
}

// registeredNames has the names of the caches of each registry, because a registry takes long to reject a
// collector.
var registeredNames sync.Map

// register registers a collector under the first name of numbered that is free.
func register(registerer prometheus.Registerer, collector func(name string) prometheus.Collector,
	name string) (unregister func(), err error) {
	for name := range numberedNames(name) {
		key := fmt.Sprintf("%p %s", registerer, name)
		if _, taken := registeredNames.LoadOrStore(key, true); taken {
			continue
		}
		made := collector(name)
		if err = registerer.Register(made); err == nil {
			return func() { registerer.Unregister(made); registeredNames.Delete(key) }, nil
		}
		registeredNames.Delete(key)
		if _, taken := errors.AsType[prometheus.AlreadyRegisteredError](err); !taken {
			break
		}
	}
	return nil, err
}
