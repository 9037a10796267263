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
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Defaults of Options.
const (
	DefaultHistory      = 1000
	DefaultFreshTimeout = 5 * time.Second
)

// Options configures a Server. Factory, Types and Config are required.
type Options struct {
	// Factory provides the informers. New adds an informer of CustomResourceDefinitions, which describe how
	// types are served.
	Factory *dynamicinformer.Factory
	// Types provides the types of the cluster, see discovery.Tracker.Types.
	Types typesource.Source
	// Config is for requests that the cache cannot answer. It is copied. Disable
	// its rate limit with QPS -1, because requests of clients wait for it.
	Config *rest.Config
	// History is the minimum number of changes that each type remembers for watches. Default DefaultHistory.
	History int
	// FreshTimeout is the maximum time that a consistent read waits for the cache. Default
	// DefaultFreshTimeout.
	FreshTimeout time.Duration
	// ConcealPlans omits plans and warnings from answers to queries in one namespace, and refuses to explain
	// these queries. Plans count the objects of all namespaces. Set it if readers are not allowed to list all
	// namespaces.
	ConcealPlans bool
	// Handler configures watches and limits.
	Handler readapi.HandlerOptions
}

// Server serves informers as a Kubernetes API. It is an http.Handler. Create it with New.
type Server struct {
	options     Options
	handler     http.Handler
	upstream    *upstream
	types       *typeRegistry
	definitions *dynamicinformer.Handle
	cleanups    []func()

	mu struct {
		sync.Mutex
		caches map[schema.GroupResource]*typeCache
	}
}

// New returns a server without types. Call Close to release its informer. The error describes missing or
// invalid options.
func New(options Options) (*Server, error) {
	if options.Factory == nil || options.Types == nil || options.Config == nil {
		return nil, errors.New("live: Factory, Types and Config are required")
	}
	options.History = cmp.Or(max(options.History, 0), DefaultHistory)
	options.FreshTimeout = cmp.Or(max(options.FreshTimeout, 0), DefaultFreshTimeout)
	if options.Handler.Now == nil {
		options.Handler.Now = time.Now
	}
	s := &Server{options: options}
	s.mu.caches = map[schema.GroupResource]*typeCache{}
	s.handler = readapi.NewHandler(backend{s}, options.Handler)
	var err error
	if s.upstream, err = newUpstream(options.Config); err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if s.definitions, err = options.Factory.Acquire(crd.GVR,
		dynamicinformer.ResourceOptions{Shard: dynamicinformer.Unsharded()}); err != nil {
		return nil, fmt.Errorf("live: watch CustomResourceDefinitions: %w", err)
	}
	registration, err := s.definitions.Informer().AddEventHandler(dynamicinformer.Named("live",
		dynamicinformer.MetadataOnly(definitionHandler{s})))
	if err != nil {
		s.definitions.Release()
		return nil, fmt.Errorf("live: watch CustomResourceDefinitions: %w", err)
	}
	if err := s.definitions.Informer().KeepHistory(1); err != nil {
		s.definitions.Release()
		return nil, fmt.Errorf("live: watch CustomResourceDefinitions: %w", err)
	}
	s.types = newTypeRegistry()
	s.cleanups = []func(){
		options.Types.Subscribe(s.types),
		func() { _ = s.definitions.Informer().RemoveEventHandler(registration) }, // the handler is registered
		s.definitions.Release,
	}
	return s, nil
}

// Close releases the server's informer in the factory. Running requests continue.
func (s *Server) Close() {
	for _, stop := range s.cleanups {
		stop()
	}
}

// AddType serves the type of an informer of the factory from its cache, with the given indexes of the
// informer. It replaces an earlier informer of the type. When the informer stops, the type is no longer
// served from the cache, and its watches end. AddType fails if the cache is not a copy of the type, see
// dynamicinformer.Informer.KeepHistory.
func (s *Server) AddType(informer *dynamicinformer.Informer, indexes ...*indexers.Index) error {
	if err := informer.KeepHistory(s.options.History); err != nil {
		return err
	}
	s.addView(bind.ViewOf(informer, indexes...))
	return nil
}

// addView implements AddType for an informer with a history.
func (s *Server) addView(view *bind.View) *typeCache {
	cache := &typeCache{
		server: s, informer: view.Informer(), gvr: view.Informer().GVR(),
		ended: make(chan struct{}), gapCheckToken: make(chan struct{}, 1),
	}
	cache.view.Store(view)
	cache.mu.gapWaiters = map[uint64]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	if previous := s.mu.caches[cache.gvr.GroupResource()]; previous != nil {
		// Without the same fields, clients cannot continue.
		replaced := previous.informer != cache.informer &&
			(previous.informer.History().Pruned || cache.informer.History().Pruned)
		if replaced {
			cache.keptSince = previous.completeUntil(previous.informer.History())
		}
		defer previous.stop(replaced)
	}
	s.mu.caches[cache.gvr.GroupResource()] = cache
	go cache.endWithInformer() // ends with the informer, or with RemoveType
	return cache
}

// RemoveType stops serving a type from the cache. Its watches end.
func (s *Server) RemoveType(gr schema.GroupResource) {
	s.mu.Lock()
	served := s.mu.caches[gr]
	delete(s.mu.caches, gr)
	s.mu.Unlock()
	if served != nil {
		served.stop(false)
	}
}

// EndWatches ends the watches of a type, so that clients send new requests.
func (s *Server) EndWatches(gr schema.GroupResource) {
	if served := s.cacheOf(gr); served != nil {
		served.resetDefinition()
	}
}

// Serves reports whether a type is currently served from the cache, see WaitForSync.
func (s *Server) Serves(gr schema.GroupResource) bool {
	served := s.cacheOf(gr)
	return served != nil && served.collection() != nil
}

func (s *Server) cacheOf(gr schema.GroupResource) *typeCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.caches[gr]
}

// backend is a Server as a readapi.Backend.
type backend struct{ *Server }

var _ readapi.Backend = backend{}

// ServedTypes implements readapi.Backend. The handler uses it only to find groups with built-in types.
// Discovery requests are forwarded.
func (b backend) ServedTypes() ([]readapi.Type, uint64) { return nil, 0 }

func (b backend) Collection(gr schema.GroupResource) readapi.Collection {
	served := b.cacheOf(gr)
	if served == nil {
		return nil
	}
	if c := served.collection(); c != nil {
		return c
	}
	return nil
}
