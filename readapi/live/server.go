package live

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
)

// Defaults of Options.
const (
	DefaultHistory      = 1000
	DefaultFreshTimeout = 5 * time.Second
)

// Options say what a Server stands on. Factory, Types and Config are required.
type Options struct {
	// Factory has the informers. From New on it also follows CustomResourceDefinitions, which say how types
	// are served.
	Factory *dynamicinformer.Factory
	// Types tells which types there are; a discovery.Tracker does through its Types method.
	Types typesource.Source
	// Config is how to reach the API server for what is not served from the cache, and to ask it how far it
	// is. It is copied. It should have no limit on the rate (QPS -1): requests of clients wait for it.
	Config *rest.Config
	// History is how many changes of each type can at least be watched after the fact. Default
	// DefaultHistory.
	History int
	// FreshTimeout is how long a request for the present state waits until the cache has it. Default
	// DefaultFreshTimeout.
	FreshTimeout time.Duration
	// ConcealPlans leaves plans and warnings out of answers to queries in one namespace, and refuses to
	// explain them: they count the objects of all namespaces. It is for readers who may not list these.
	ConcealPlans bool
	// Handler adjusts watches; Writes has no effect.
	Handler readapi.HandlerOptions
}

// Server serves informers. It is an http.Handler, and made by New.
type Server struct {
	options     Options
	handler     http.Handler
	upstream    *upstream
	types       *typeBoard
	definitions *dynamicinformer.Handle
	stops       []func()

	mu struct {
		sync.Mutex
		kept map[schema.GroupResource]*kept
	}
}

// New returns a server that keeps no type yet. Close ends what it asks of the factory. The error says what
// the options lack, or is that of the config or the factory.
func New(options Options) (*Server, error) {
	if options.Factory == nil || options.Types == nil || options.Config == nil {
		return nil, errors.New("live: Factory, Types and Config are required")
	}
	options.History = cmp.Or(max(options.History, 0), DefaultHistory)
	options.FreshTimeout = cmp.Or(max(options.FreshTimeout, 0), DefaultFreshTimeout)
	s := &Server{options: options}
	s.mu.kept = map[schema.GroupResource]*kept{}
	s.handler = readapi.NewHandler(backend{s}, options.Handler)
	var err error
	if s.upstream, err = newUpstream(options.Config); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if s.definitions, err = options.Factory.Acquire(crd.GVR,
		dynamicinformer.ResourceOptions{Shard: dynamicinformer.Unsharded()}); err != nil {
		return nil, fmt.Errorf("live: following CustomResourceDefinitions: %w", err)
	}
	registration, err := s.definitions.Informer().AddEventHandler(dynamicinformer.Named("live",
		dynamicinformer.MetadataOnly(redefiner{s})))
	if err != nil {
		s.definitions.Release()
		return nil, fmt.Errorf("live: following CustomResourceDefinitions: %w", err)
	}
	if err := s.definitions.Informer().KeepHistory(1); err != nil {
		s.definitions.Release()
		return nil, fmt.Errorf("live: following CustomResourceDefinitions: %w", err)
	}
	s.types = newTypeBoard()
	s.stops = []func(){
		options.Types.Subscribe(s.types),
		func() { _ = s.definitions.Informer().RemoveEventHandler(registration) }, // it is there
		s.definitions.Release,
	}
	return s, nil
}

// Close ends what the server asks of the factory. Requests that are under way go on.
func (s *Server) Close() {
	for _, stop := range s.stops {
		stop()
	}
}

// Keep serves the type of an informer of the factory from its cache, with these indexes, which the informer
// has. Another informer of the type takes the place of an earlier one. Once the informer has stopped, the
// type is no longer served from its cache, and its watches end. Keep fails for views that are no copy of the
// type, see dynamicinformer.Informer.KeepHistory.
func (s *Server) Keep(informer *dynamicinformer.Informer, indexes ...*indexers.Index) error {
	if err := informer.KeepHistory(s.options.History); err != nil {
		return err
	}
	k := &kept{
		server: s, informer: informer, gvr: informer.GVR(), indexes: indexes,
		set:  indexers.CompileIndexes(indexes...),
		over: make(chan struct{}), asking: make(chan struct{}, 1),
	}
	k.mu.bridging = map[uint64]int{}
	k.checks.timeout = s.options.FreshTimeout
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.mu.kept[k.gvr.GroupResource()]; before != nil {
		defer before.end()
	}
	s.mu.kept[k.gvr.GroupResource()] = k
	go k.untilStopped() // ended with the informer, or when it is kept no longer
	return nil
}

// Drop no longer serves a type from the cache. Its watches end.
func (s *Server) Drop(gr schema.GroupResource) {
	s.mu.Lock()
	k := s.mu.kept[gr]
	delete(s.mu.kept, gr)
	s.mu.Unlock()
	if k != nil {
		k.end()
	}
}

// EndWatches ends the watches of a type that is kept, so that their clients ask anew.
func (s *Server) EndWatches(gr schema.GroupResource) {
	if k := s.keeper(gr); k != nil {
		k.redefine()
	}
}

// Serves reports whether a type is served from the cache now; see WaitForSync.
func (s *Server) Serves(gr schema.GroupResource) bool {
	k := s.keeper(gr)
	return k != nil && k.collection() != nil
}

// keeper returns what serves a type, or nil.
func (s *Server) keeper(gr schema.GroupResource) *kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.kept[gr]
}

// backend is a Server as readapi's handler sees it.
type backend struct{ *Server }

var _ readapi.Backend = backend{}

// ServedTypes implements readapi.Backend. It is asked only whether a group has built-in types: discovery is
// the cluster's.
func (b backend) ServedTypes() ([]readapi.Type, uint64) { return nil, 0 }

// Collection implements readapi.Backend.
func (b backend) Collection(gr schema.GroupResource) readapi.Collection {
	k := b.keeper(gr)
	if k == nil {
		return nil
	}
	if c := k.collection(); c != nil {
		return c
	}
	return nil
}
