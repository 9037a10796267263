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
	// firstNeeded receives the first type that needs the tracker.
	firstNeeded chan schema.GroupResource
	// allNeeded is closed by needAll.
	allNeeded chan struct{}
	needAll   func()

	mu struct {
		sync.Mutex
		// tracked is the first type that needs the tracker.
		tracked   schema.GroupResource
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
	s := &typeSource{firstNeeded: make(chan schema.GroupResource, 1), allNeeded: make(chan struct{})}
	s.needAll = sync.OnceFunc(func() { close(s.allNeeded) })
	s.mu.listeners, s.mu.mapped = map[*listener]struct{}{}, map[schema.GroupResource]typesource.Type{}
	s.tracker, err = discovery.NewTracker(nil, discovery.TrackerOptions{Client: documents, Dynamic: client})
	return s, err
}

// run tracks the types of the server until ctx ends.
func (s *typeSource) run(ctx context.Context) {
	select { // the tracker fails only if it is run twice
	case gr := <-s.firstNeeded:
		_ = s.tracker.RunFor(ctx, gr, s.allNeeded)
	case <-s.allNeeded:
		_ = s.tracker.Run(ctx)
	case <-ctx.Done():
	}
}

// needLocked runs the tracker for a type, and for all types if it is not the first.
func (s *typeSource) needLocked(gr schema.GroupResource) {
	switch s.mu.tracked {
	case schema.GroupResource{}:
		s.mu.tracked = gr
		s.firstNeeded <- gr // it has space for one
	case gr:
	default:
		s.needAll()
	}
}

// stateChanged runs the tracker for an informer that another user of the factory has made, and for a type
// that the server no longer has.
func (s *typeSource) stateChanged(_, after status.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gr := after.GVR.GroupResource()
	if _, mapped := s.mu.mapped[gr]; !mapped || after.Reason == status.ReasonNotFound {
		s.needLocked(gr)
	}
}

// add adds a type that the RESTMapper has found.
func (s *typeSource) add(mapping *meta.RESTMapping) {
	gr := mapping.Resource.GroupResource()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, builtin := naming.FindBuiltin(gr.Group, "", gr.Resource); !builtin {
		s.needLocked(gr)
	}
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

// Subscribe implements typesource.Source. The first listener is the factory's. Each other one is a
// subscription, which may select types that no caller has used.
func (s *typeSource) Subscribe(target typesource.Listener) (stop func()) {
	l := &listener{target: target}
	l.mu.reported = map[schema.GroupResource]bool{}
	s.mu.Lock()
	if len(s.mu.listeners) > 0 {
		s.needAll()
	}
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
