package readapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// newBuiltInStorage returns a storage with three built-in types and a few objects of them.
func newBuiltInStorage(t testing.TB) *apiserver.Storage {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
	for plural, kind := range map[string]string{"configmaps": "ConfigMap", "pods": "Pod", "nodes": "Node"} {
		typ := readapi.Type{Namespaced: plural != "nodes",
			Versions: []readapi.Version{{Name: "v1", Subresources: []string{"status"}}}}
		typ.Names.Plural, typ.Names.Kind = plural, kind
		if err := storage.SetType(typ); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, storage, configMap("a", "1"))
	apply(t, storage, configMap("b", "1"))
	apply(t, storage, "{apiVersion: v1, kind: Node, metadata: {name: one}, spec: {podCIDRs: [10.0.0.0/24]}}")
	apply(t, storage, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: p}}
spec:
  nodeName: one
  containers: [{name: c, image: i, resources: {limits: {cpu: 500m, memory: 1Gi}}, ports: [{containerPort: 80}]}]
status: {phase: Running, startTime: 2026-01-02T03:04:05Z, conditions: [{type: Ready, status: "True"}]}
`)
	return storage
}

func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {value: '%s'}}", name, value)
}

// switchableHandler wraps a handler. While it is blocked, running requests end and new ones wait.
type switchableHandler struct {
	handler http.Handler

	mu          sync.Mutex
	endRequests chan struct{} // closed by block
	unblocked   chan struct{} // closed while requests are served
	arrived     chan struct{} // closed when a request waits
}

func newSwitchableHandler(h http.Handler) *switchableHandler {
	open := make(chan struct{})
	close(open)
	return &switchableHandler{handler: h, endRequests: make(chan struct{}), unblocked: open}
}

func (s *switchableHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	endRequests, open := s.endRequests, s.unblocked
	select {
	case <-open:
	default:
		select {
		case <-s.arrived:
		default:
			close(s.arrived)
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	select {
	case <-open:
	case <-ctx.Done():
		return
	}
	go func() { // ends with the request
		select {
		case <-endRequests:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.handler.ServeHTTP(w, r.WithContext(ctx))
}

// block ends running requests and delays new ones until open is called. arrived is closed when the first one
// waits.
func (s *switchableHandler) block() (open func(), arrived <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.endRequests)
	next := make(chan struct{})
	s.unblocked, s.arrived = next, make(chan struct{})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endRequests = make(chan struct{})
		close(next)
	}, s.arrived
}

// listOnlyClient and listOnlyMetadataClient are clients that make informers list instead of using
// watch-lists.
type listOnlyClient struct{ kubernetes.Interface }

func (listOnlyClient) IsWatchListSemanticsUnSupported() bool { return true }

type listOnlyMetadataClient struct{ metadata.Interface }

func (listOnlyMetadataClient) IsWatchListSemanticsUnSupported() bool { return true }

// TestTypedInformers runs client-go's typed and metadata informers, several of one type, through changes and
// through an outage that outlasts the history: with watch-lists and with lists, over HTTP and within the
// process.
func TestTypedInformers(t *testing.T) {
	for _, transport := range []string{"http", "in-process"} {
		for _, begin := range []string{"watch-list", "list"} {
			t.Run(transport+"/"+begin, func(t *testing.T) {
				t.Parallel() // each test waits for reflectors to retry
				s := newBuiltInStorage(t)
				g := newSwitchableHandler(handlerOf(s))
				config := readapi.Config(g)
				if transport == "http" {
					server := httptest.NewServer(g)
					t.Cleanup(server.Close) // after the informers have ended
					config = &rest.Config{Host: server.URL, QPS: -1}
				}
				checkTypedInformers(t, s, g, config, begin == "list")
			})
		}
	}
}

func checkTypedInformers(t *testing.T, storage *apiserver.Storage, handler *switchableHandler,
	config *rest.Config, listFirst bool) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var clients kubernetes.Interface = typed
	var partials metadata.Interface = partial
	if listFirst {
		clients, partials = listOnlyClient{typed}, listOnlyMetadataClient{partial}
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	sharedInformers := map[string]cache.SharedIndexInformer{
		"typed":   factory.Core().V1().ConfigMaps().Informer(),
		"another": informers.NewSharedInformerFactory(clients, 0).Core().V1().ConfigMaps().Informer(),
		"metadata": metadatainformer.NewSharedInformerFactory(partials,
			0).ForResource(corev1.SchemeGroupVersion.WithResource("configmaps")).Informer(),
	}
	journals := map[string]*journal{}
	for name, informer := range sharedInformers {
		journals[name] = recordEvents(t, informer)
	}
	runInformer(t, pods.Informer())
	runInformer(t, nodes.Informer())

	pod, err := pods.Lister().Pods("default").Get("p")
	if err != nil || pod.Status.Phase != corev1.PodRunning || pod.UID == "" ||
		pod.Spec.Containers[0].Resources.Limits.Cpu().MilliValue() != 500 {
		t.Errorf("Get() of the pod = %+v, %v", pod, err)
	}
	if node, err := nodes.Lister().Get("one"); err != nil || len(node.Spec.PodCIDRs) != 1 {
		t.Errorf("Get() of the node = %+v, %v", node, err)
	}
	expect := func(want ...string) {
		t.Helper()
		for name, j := range journals {
			j.await(t, want...)
			if got := informerVersions(t, sharedInformers[name]); !cmp.Equal(got, storedVersions(t,
				storage)) {
				t.Errorf("%s informer has the versions %v, want %v", name, got, storedVersions(t, storage))
			}
		}
	}
	apply(t, storage, configMap("c", "1"))
	apply(t, storage, configMap("c", "2"))
	storage.Delete(configMaps, "default", "c")
	expect("add default/c", "update default/c", "delete default/c")

	// A client that was disconnected for longer than the history gets 410 and lists again.
	open, arrived := handler.block()
	<-arrived
	storage.Delete(configMaps, "default", "a")
	storage.Compact()
	apply(t, storage, configMap("b", "2"))
	storage.Compact()
	open()
	expect("lost default/a", "update default/b")
	apply(t, storage, configMap("d", "1"))
	expect("add default/d")
	cm, exists, err := sharedInformers["typed"].GetStore().GetByKey("default/b")
	if err != nil || !exists || cm.(*corev1.ConfigMap).Data["value"] != "2" {
		t.Errorf("after the outage, the config map is %+v, %v, want value 2", cm, err)
	}
}

var configMaps = corev1.Resource("configmaps")

// recordEvents runs an informer and returns a journal of its events.
func recordEvents(t *testing.T, informer cache.SharedIndexInformer) *journal {
	t.Helper()
	j := &journal{changed: make(chan struct{})}
	if _, err := informer.AddEventHandler(j.handler()); err != nil {
		t.Fatal(err)
	}
	runInformer(t, informer)
	return j
}

// runInformer runs an informer until the test ends, and waits for its first list.
func runInformer(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { informer.Run(stop) }) // ends with stop
	t.Cleanup(func() { close(stop); wg.Wait() })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("timed out waiting for the sync")
	}
}

// informerVersions returns the resource versions of the informer's objects.
func informerVersions(t *testing.T, informer cache.SharedIndexInformer) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for _, obj := range informer.GetStore().List() {
		o, err := meta.Accessor(obj)
		if err != nil {
			t.Fatal(err)
		}
		versions[o.GetName()] = o.GetResourceVersion()
	}
	return versions
}

// storedVersions returns the resource versions of the stored config maps.
func storedVersions(t *testing.T, s *apiserver.Storage) map[string]string {
	t.Helper()
	versions := map[string]string{}
	items := get(handlerOf(s), "/api/v1/configmaps").Decoded(t)
	if err := items.EachListItem(func(item runtime.Object) error {
		o := item.(metav1.Object)
		versions[o.GetName()] = o.GetResourceVersion()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return versions
}

// TestTypedPager verifies that the pages of a typed list hold the state at one version, despite changes
// between pages.
func TestTypedPager(t *testing.T) {
	s := newBuiltInStorage(t)
	client, err := kubernetes.NewForConfig(readapi.Config(handlerOf(s)))
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.CoreV1().ConfigMaps("default").List(ctx, options)
		pages++
		s.Delete(configMaps, "default", "b")
		apply(t, s, configMap("c", fmt.Sprint(pages)))
		return list, err
	})
	p.PageSize = 1
	var names []string
	if err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
		names = append(names, obj.(*corev1.ConfigMap).Name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(names, []string{"a", "b"}) || pages != 2 {
		t.Errorf("the pager returned %v on %d pages, want a and b on 2", names, pages)
	}
}
