package controllerruntime

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
)

// typeSource reports the types that the RESTMapper has found. Its tracker of all types, which costs more than
// a small cache, runs once an answer suggests that a type has changed, or another type is used.
type typeSource struct {
	tracker     *discovery.Tracker
	definitions metadata.Getter
	// needed is closed by need.
	needed chan struct{}
	need   func()
	// unidentified has custom types that were not looked up. More than it has space for need the tracker.
	unidentified chan *meta.RESTMapping
	subscribed   atomic.Bool
	// mapped has the types that the RESTMapper has found, by schema.GroupVersionResource.
	mapped sync.Map
}

// FindsTypesOnDemand implements typesource.OnDemand.
func (*typeSource) FindsTypesOnDemand() {}

// newTypeSource returns the types of a server. It sends no request before run.
func newTypeSource(config *rest.Config, httpClient *http.Client,
	client dynamic.Interface) (*typeSource, error) {
	documents, err := discovery.NewClient(config, discovery.Options{HTTPClient: httpClient})
	if err != nil {
		return nil, err
	}
	definitions, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, err
	}
	s := &typeSource{definitions: definitions.Resource(crd.GVR), needed: make(chan struct{}),
		unidentified: make(chan *meta.RESTMapping, 64)}
	s.need = sync.OnceFunc(func() { close(s.needed) })
	s.tracker, err = discovery.NewTracker(nil, discovery.TrackerOptions{Client: documents, Dynamic: client})
	return s, err
}

// run looks up the CRDs of types until the tracker is needed, and then tracks the types of the server until
// ctx ends.
func (s *typeSource) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case mapping := <-s.unidentified:
			wg.Go(func() { s.identify(ctx, mapping) })
		case <-s.needed:
			_ = s.tracker.Run(ctx) // it fails only if called twice
			return
		case <-ctx.Done():
			return
		}
	}
}

// identify reads the metadata of the CRD of a type, which shows later whether it was deleted or recreated.
// After an error this stays unknown. It lists, because the tracker has that permission.
func (s *typeSource) identify(ctx context.Context, mapping *meta.RESTMapping) {
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, mapping.Resource.GroupResource().String())
	found, err := s.definitions.List(ctx, metav1.ListOptions{FieldSelector: name.String()})
	if err == nil && len(found.Items) == 1 {
		s.tracker.Assume(mapping, &found.Items[0])
	}
}

// stateChanged runs the tracker for an informer that another user of the factory has made, and for a type
// that the server no longer has or cannot watch.
func (s *typeSource) stateChanged(_, after status.Status) {
	if _, mapped := s.mapped.Load(after.GVR); !mapped || after.Reason == status.ReasonNotFound ||
		after.Reason == status.ReasonVerbUnsupported {
		s.need()
	}
}

func isBuiltin(gvr schema.GroupVersionResource) bool {
	_, found := naming.FindBuiltin(gvr.Group, "", gvr.Resource)
	return found
}

// add adds a type that the RESTMapper has found.
func (s *typeSource) add(mapping *meta.RESTMapping) {
	gvr := mapping.Resource
	if _, known := s.mapped.LoadOrStore(gvr, true); known {
		return
	}
	s.tracker.Assume(mapping, nil)
	if isBuiltin(gvr) {
		return
	}
	select {
	case s.unidentified <- mapping:
	default:
		s.need()
	}
}

// Subscribe implements typesource.Source. The first listener is the factory's. Each other one is a
// subscription, which may select types that no caller has used.
func (s *typeSource) Subscribe(target typesource.Listener) (stop func()) {
	if s.subscribed.Swap(true) {
		s.need()
	}
	return s.tracker.Types().Subscribe(target)
}
