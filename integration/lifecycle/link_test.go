package lifecycle_test

import (
	"sync"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// cuttableConnection is a connection that can be cut. The zero value is usable.
type cuttableConnection struct {
	once   sync.Once
	faults *conformance.Faults
}

// through makes config send its requests through the connection, and returns config.
func (l *cuttableConnection) through(config *rest.Config) *rest.Config {
	l.once.Do(func() { l.faults = conformance.NewFaults(nil) })
	config.Wrap(l.faults.Wrap)
	return config
}

// cut ends all watches so that they cannot be resumed, and blocks all requests.
func (l *cuttableConnection) cut() (release func()) {
	release = l.faults.Hold()
	l.faults.ExpireWatches()
	return release
}
