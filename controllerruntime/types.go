package controllerruntime

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// typeSource tells which types there are: at once those that the RESTMapper has found, and from then on what
// a tracker knows. So no informer waits for a first round of discovery, and each learns when its type goes
// and comes back.
type typeSource struct {
	tracker *discovery.Tracker

	mu struct {
		sync.Mutex
		listeners map[*listener]struct{}
		// mapped are the types that the RESTMapper has found and that the tracker has not told of yet.
		mapped map[schema.GroupResource]typesource.Type
	}
}

var _ typesource.Source = (*typeSource)(nil)

// newTypeSource returns the types of a server, which is not contacted before run.
func newTypeSource(config *rest.Config, httpClient *http.Client,
	client dynamic.Interface) (*typeSource, error) {
	documents, err := discovery.NewClient(config, discovery.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}
	s := &typeSource{}
	s.mu.listeners, s.mu.mapped = map[*listener]struct{}{}, map[schema.GroupResource]typesource.Type{}
	s.tracker, err = discovery.NewTracker(nil, discovery.TrackerOptions{Client: documents, Dynamic: client})
	return s, err
}

// run follows the server until ctx ends.
func (s *typeSource) run(ctx context.Context) { _ = s.tracker.Run(ctx) } // it fails only when called twice

// mapped tells that the RESTMapper has found a type.
func (s *typeSource) mapped(mapping *meta.RESTMapping) {
	gr := mapping.Resource.GroupResource()
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.mu.mapped[gr]
	if !ok {
		t = typesource.Type{
			GroupResource: gr, Kind: mapping.GroupVersionKind.Kind,
			Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace, Established: true,
		}
	}
	if slices.Contains(t.Versions, mapping.Resource.Version) {
		return
	}
	t.Versions = append(slices.Clip(t.Versions), mapping.Resource.Version)
	s.mu.mapped[gr] = t
	for l := range s.mu.listeners {
		l.assume(t)
	}
}

// Subscribe implements typesource.Source.
func (s *typeSource) Subscribe(to typesource.Listener) (stop func()) {
	l := &listener{to: to}
	l.mu.told = map[schema.GroupResource]bool{}
	s.mu.Lock()
	for _, t := range s.mu.mapped {
		l.assume(t)
	}
	s.mu.listeners[l] = struct{}{}
	s.mu.Unlock()
	unsubscribe := s.tracker.Types().Subscribe(l)
	return func() {
		s.mu.Lock()
		delete(s.mu.listeners, l)
		s.mu.Unlock()
		unsubscribe()
	}
}

// listener passes on what a tracker tells, which takes precedence over what is assumed. A factory's listener
// takes note and returns; so it is called under the lock that keeps the order.
type listener struct {
	to typesource.Listener
	mu struct {
		sync.Mutex
		// told are the types that the tracker has told of.
		told map[schema.GroupResource]bool
	}
}

// assume tells of a type that the tracker has not told of.
func (l *listener) assume(t typesource.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.told[t.GroupResource] {
		l.to.SetType(t)
	}
}

// SetType implements typesource.Listener.
func (l *listener) SetType(t typesource.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.told[t.GroupResource] = true
	l.to.SetType(t)
}

// RemoveType implements typesource.Listener. The RESTMapper may find the type again before the tracker does.
func (l *listener) RemoveType(gr schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.told, gr)
	l.to.RemoveType(gr)
}

// SetUnknown implements typesource.Listener.
func (l *listener) SetUnknown(unknown map[schema.GroupVersion]error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to.SetUnknown(unknown)
}

// SetComplete implements typesource.Listener.
func (l *listener) SetComplete() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to.SetComplete()
}
