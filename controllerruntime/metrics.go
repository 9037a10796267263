package controllerruntime

import (
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crdcache/crdcache/metrics"
)

// usedNames are the names of the registered collectors of the process. They make the cost of a further name
// independent of their number; a registry rejects a name that another package has used.
var usedNames = struct {
	sync.Mutex
	names map[collectorName]bool
}{names: map[collectorName]bool{}}

// collectorName is a name in a registry, with a number from 2 on if the name was taken.
type collectorName struct {
	registry prometheus.Registerer
	name     string
	number   int
}

func (n collectorName) String() string {
	if n.number == 1 {
		return n.name
	}
	return fmt.Sprintf("%s (%d)", n.name, n.number)
}

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
	unregister, err := register(registerer, func(name string) prometheus.Collector {
		return metrics.NewCollector(c.factory, metrics.Options{Name: name})
	}, c.options.Name)
	if err != nil {
		ctrllog.Log.WithName("cache").Error(err, "Failed to register the metrics of the cache")
		return func() {}
	}
	return unregister
}

// maxRejections is how many names of other packages in a registry are skipped.
const maxRejections = 100

// register registers a collector under name, or under name with the first free number from 2 on.
func register(registerer prometheus.Registerer, collector func(name string) prometheus.Collector,
	name string) (unregister func(), err error) {
	usedNames.Lock()
	defer usedNames.Unlock()
	rejected := 0
	for n := (collectorName{registerer, name, 1}); ; n.number++ {
		if usedNames.names[n] {
			continue
		}
		made := collector(n.String())
		err := registerer.Register(made)
		if err == nil {
			usedNames.names[n] = true
			return func() {
				usedNames.Lock()
				defer usedNames.Unlock()
				registerer.Unregister(made)
				delete(usedNames.names, n)
			}, nil
		}
		rejected++
		if _, isRegistered := errors.AsType[prometheus.AlreadyRegisteredError](err); !isRegistered ||
			rejected > maxRejections {
			return nil, err
		}
	}
}
