package dynamicinformer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
)

// Named returns an event handler that is called as handler is, and has a name in HandlerStatus and in errors. Without
// one the name is the Go type, which many handlers may share. It goes with MetadataOnly in either order.
func Named(name string, handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if handler == nil {
		return nil // which informers refuse
	}
	return named{handler, name}
}

type named struct {
	cache.ResourceEventHandler
	name string
}

var (
	_ informer.Named   = named{}
	_ informer.Wrapper = named{}
)

// HandlerName implements informer.Named.
func (n named) HandlerName() string { return n.name }

// Unwrap implements informer.Wrapper.
func (n named) Unwrap() cache.ResourceEventHandler { return n.ResourceEventHandler }
