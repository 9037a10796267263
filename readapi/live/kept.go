package live

import (
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
)

// kept is a type that is served from an informer.
type kept struct {
	server   *Server
	informer *dynamicinformer.Informer
	gvr      schema.GroupVersionResource
	indexes  []*indexers.Index
	set      dynamicinformer.IndexSet // of indexes
	checks   checks
	asking   chan struct{} // holds a token while somebody asks about the gap

	// over is closed when the type is not served from the informer any more: that has stopped, or is kept no
	// longer.
	over chan struct{}

	mu struct {
		sync.Mutex
		// typ is how the type is served, and ended is closed when that changes; nil as long as it is not
		// known.
		typ   *readapi.Type
		spec  string // of its definition
		ended chan struct{}
		// sorted is what somebody has listed last.
		sorted weak.Pointer[sorted]
		// confirmed says that the cache of an epoch, from when its history had got to one version on, is
		// known to be complete up to another, of which its watch has not told.
		confirmed struct {
			from, version uint64
			epoch         int
		}
		gap gap
		// bridging counts the clients that wait for bridge, by version.
		bridging map[uint64]int
	}
}

// end has the type not be served from the informer any more, and ends the watches. It may be called again.
func (k *kept) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.isOver() {
		close(k.over)
	}
	k.redefineLocked()
}

func (k *kept) isOver() bool {
	select {
	case <-k.over:
		return true
	default:
		return false
	}
}

// untilStopped ends with the informer: what it shows would be what was there then, for good.
func (k *kept) untilStopped() {
	select {
	case <-k.informer.Stopped():
		k.end()
	case <-k.over:
	}
}

// redefine has the type be looked up anew, and ends the watches.
func (k *kept) redefine() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.redefineLocked()
}

// redefineFrom is redefine, unless the type is served by this definition.
func (k *kept) redefineFrom(spec string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.spec != spec {
		k.redefineLocked()
	}
}

func (k *kept) redefineLocked() {
	if k.mu.typ != nil {
		close(k.mu.ended)
		k.mu.typ, k.mu.ended = nil, nil
	}
}

// served returns how the type is served, and what is closed when that changes; false while it is not known.
func (k *kept) served() (readapi.Type, <-chan struct{}, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isOver() {
		return readapi.Type{}, nil, false
	}
	if k.mu.typ == nil {
		t, spec, ok := k.server.typeOf(k.gvr)
		if !ok {
			return t, nil, false
		}
		k.mu.typ, k.mu.spec, k.mu.ended = &t, spec, make(chan struct{})
	}
	return *k.mu.typ, k.mu.ended, true
}

// collection returns the objects as they are served now, or nil where the cache cannot serve them.
func (k *kept) collection() *collection {
	typ, ended, ok := k.served()
	if !ok {
		return nil
	}
	h := k.informer.History()
	if !h.Synced {
		return nil
	}
	return &collection{kept: k, typ: typ, ended: ended, epoch: h.Epoch}
}

// complete is the version up to which the cache is known to be complete.
func (k *kept) complete(h dynamicinformer.History) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.mu.confirmed; c.epoch == h.Epoch && c.from <= h.ResourceVersion {
		return max(h.ResourceVersion, c.version)
	}
	return h.ResourceVersion
}

// confirm remembers that the content of a history is complete up to a version.
func (k *kept) confirm(h dynamicinformer.History, version uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := &k.mu.confirmed; c.epoch < h.Epoch || c.epoch == h.Epoch && c.version < version {
		c.from, c.version, c.epoch = h.ResourceVersion, version, h.Epoch
	}
}
