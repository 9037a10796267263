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
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
)

// typeSource is a source of types that does not wait for discovery. It reports the types that the RESTMapper
// has found, and then the changes that a tracker finds, such as removed and recreated types. The tracker runs
// once a type is used that can be removed or that the RESTMapper has not found.
type typeSource struct {
	tracker *discovery.Tracker
	// trackerNeeded is closed by needTracker.
	trackerNeeded chan struct{}
	needTracker   func()

	mu struct {
		sync.Mutex
		listeners map[*listener]struct{}
		// mapped has the types that the RESTMapper has found and the tracker has not reported.
		mapped map[schema.GroupResource]typesource.Type
	}
}

var _ typesource.Source = (*typeSource)(nil)

// newTypeSource returns the types of a server. It sends no request before run.
func newTypeSource(config *rest.Config, httpClient *http.Client,
	client dynamic.Interface) (*typeSource, error) {
	documents, err := discovery.NewClient(config, discovery.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}
	s := &typeSource{trackerNeeded: make(chan struct{})}
	s.needTracker = sync.OnceFunc(func() { close(s.trackerNeeded) })
	s.mu.listeners, s.mu.mapped = map[*listener]struct{}{}, map[schema.GroupResource]typesource.Type{}
	s.tracker, err = discovery.NewTracker(nil, discovery.TrackerOptions{Client: documents, Dynamic: client})
	return s, err
}

// run tracks the types of the server until ctx ends.
func (s *typeSource) run(ctx context.Context) {
	select {
	case <-s.trackerNeeded:
		_ = s.tracker.Run(ctx) // it fails only if called twice
	case <-ctx.Done():
	}
}

// stateChanged runs the tracker for an informer that another user of the factory has made, and for a type
// that the server no longer has.
func (s *typeSource) stateChanged(_, after status.Status) {
	s.mu.Lock()
	_, mapped := s.mu.mapped[after.GVR.GroupResource()]
	s.mu.Unlock()
	if !mapped || after.Reason == status.ReasonNotFound {
		s.needTracker()
	}
}

// add adds a type that the RESTMapper has found.
func (s *typeSource) add(mapping *meta.RESTMapping) {
	gr := mapping.Resource.GroupResource()
	if _, builtin := naming.FindBuiltin(gr.Group, "", gr.Resource); !builtin {
		s.needTracker()
	}
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
		l.setMapped(t)
	}
}

func (s *typeSource) Subscribe(target typesource.Listener) (stop func()) {
	l := &listener{target: target}
	l.mu.reported = map[schema.GroupResource]bool{}
	s.mu.Lock()
	for _, t := range s.mu.mapped {
		l.setMapped(t)
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

// listener forwards the types of a tracker, which take precedence over types of the RESTMapper. The
// lock preserves their order; a factory's listener returns quickly.
type listener struct {
	target typesource.Listener
	mu     struct {
		sync.Mutex
		// reported has the types that the tracker has reported.
		reported map[schema.GroupResource]bool
	}
}

// setMapped forwards a type that the tracker has not reported.
func (l *listener) setMapped(t typesource.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.mu.reported[t.GroupResource] {
		l.target.SetType(t)
	}
}

func (l *listener) SetType(t typesource.Type) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.reported[t.GroupResource] = true
	l.target.SetType(t)
}

// RemoveType implements typesource.Listener. The RESTMapper may find the type again before the tracker.
func (l *listener) RemoveType(gr schema.GroupResource, deleted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.reported, gr)
	l.target.RemoveType(gr, deleted)
}

func (l *listener) SetUnknown(unknown map[schema.GroupVersion]error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target.SetUnknown(unknown)
}

func (l *listener) SetComplete() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target.SetComplete()
}
