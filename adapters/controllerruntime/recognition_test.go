package controllerruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var (
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	deployments    = apitest.Type{GVR: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment",
		Namespaced: true}
)

func deploymentMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(deploymentKind, meta.RESTScopeNamespace)
	return mapper
}

func deploymentForms() map[string]client.Object {
	partial, dynamic := &metav1.PartialObjectMetadata{}, &unstructured.Unstructured{}
	partial.SetGroupVersionKind(deploymentKind)
	dynamic.SetGroupVersionKind(deploymentKind)
	return map[string]client.Object{"typed": &appsv1.Deployment{}, "unstructured": dynamic, "metadata": partial}
}

// watch is the handler and the predicates of a source.
type watch struct {
	handler    handler.EventHandler
	predicates []predicate.Predicate
}

type (
	// markedPredicate and markedHandler are MetadataReaders.
	markedPredicate struct{ predicate.Funcs }
	markedHandler   struct{ handler.EventHandler }
	// derivedPredicate embeds a known predicate whose methods it could override.
	derivedPredicate struct {
		predicate.GenerationChangedPredicate
	}
)

func (markedPredicate) ReadsOnlyMetadata() {}
func (markedHandler) ReadsOnlyMetadata()   {}

var (
	forObject handler.EventHandler = &handler.EnqueueRequestForObject{}
	forOwner                       = handler.EnqueueRequestForOwner(scheme.Scheme, deploymentMapper(),
		&appsv1.Deployment{})
	forController = handler.EnqueueRequestForOwner(scheme.Scheme, deploymentMapper(), &appsv1.Deployment{},
		handler.OnlyControllerOwner())
	// byGeneration queues requests with the generation instead of the namespace.
	byGeneration = handler.EnqueueRequestsFromMapFunc(func(_ context.Context,
		o client.Object) []reconcile.Request {
		key := client.ObjectKey{Namespace: fmt.Sprint(o.GetGeneration()), Name: o.GetName()}
		return []reconcile.Request{{NamespacedName: key}}
	})
	generationChanged                      = predicate.GenerationChangedPredicate{}
	labelsChanged                          = predicate.LabelChangedPredicate{}
	annotationsChanged                     = predicate.AnnotationChangedPredicate{}
	versionChanged                         = predicate.ResourceVersionChangedPredicate{}
	annotated          predicate.Predicate = predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetAnnotations()["a"] == "1"
	})
)

// recognizedWatches returns handlers and predicates that read only metadata.
func recognizedWatches(t *testing.T) map[string]watch {
	selector, err := predicate.LabelSelectorPredicate(
		metav1.LabelSelector{MatchLabels: map[string]string{"a": "1"}})
	must(t, err)
	with := func(h handler.EventHandler,
		predicates ...predicate.Predicate) watch {
		return watch{h, predicates}
	}
	return map[string]watch{
		"object":              with(forObject),
		"owner":               with(forOwner),
		"controller":          with(forController),
		"generation":          with(forObject, generationChanged),
		"generation, pointer": with(forObject, &generationChanged),
		"version":             with(forObject, versionChanged),
		"labels":              with(forOwner, labelsChanged),
		"annotations":         with(forOwner, annotationsChanged),
		"two":                 with(forOwner, generationChanged, labelsChanged),
		"or":                  with(forObject, predicate.Or(generationChanged, annotationsChanged)),
		"and, not":            with(forObject, predicate.And(versionChanged, predicate.Not(generationChanged))),
		"selector":            with(forObject, selector),
		"not selected":        with(forObject, predicate.Or(predicate.Not(selector), labelsChanged)),
		"no functions":        with(forObject, predicate.Funcs{}),
		"empty or":            with(forObject, predicate.Or[client.Object]()),
		"low priority":        with(handler.WithLowPriorityWhenUnchanged(forObject)),
		"marked":              with(markedHandler{byGeneration}, markedPredicate{annotated.(predicate.Funcs)}),
		"marked, wrapped":     with(handler.WithLowPriorityWhenUnchanged[client.Object](markedHandler{byGeneration})),
		"only metadata":       with(OnlyMetadata(byGeneration, annotated), generationChanged),
	}
}

// opaqueWatches are handlers and predicates that may read complete objects, with parts of the reported
// reasons.
var opaqueWatches = map[string]struct {
	watch
	reason string
}{
	"functions":        {watch{forObject, []predicate.Predicate{annotated}}, "a predicate calls "},
	"functions in or":  {watch{forObject, []predicate.Predicate{predicate.Or(generationChanged, annotated)}}, "a predicate calls "},
	"functions in not": {watch{forObject, []predicate.Predicate{predicate.Not(annotated)}}, "a predicate calls "},
	"functions embedded": {watch{forObject, []predicate.Predicate{predicate.GenerationChangedPredicate{
		TypedFuncs: annotated.(predicate.Funcs)}}}, "a predicate calls "},
	"derived": {watch{forObject, []predicate.Predicate{derivedPredicate{}}},
		"predicate github.com/crdcache/crdcache/adapters/controllerruntime.derivedPredicate is"},
	"map function": {watch{byGeneration, nil}, "handler.enqueueRequestsFromMapFunc is"},
	"methods": {watch{handler.Funcs{CreateFunc: forObject.Create, UpdateFunc: forObject.Update,
		DeleteFunc: forOwner.(handler.Funcs).DeleteFunc}, nil}, "handler.TypedFuncs is"},
	"two handlers": {watch{handler.Funcs{CreateFunc: forOwner.(handler.Funcs).CreateFunc,
		UpdateFunc: forController.(handler.Funcs).UpdateFunc,
		DeleteFunc: forOwner.(handler.Funcs).DeleteFunc},
		nil}, "handler.TypedFuncs is"},
	"wrapped functions": {watch{handler.WithLowPriorityWhenUnchanged(byGeneration), nil},
		"handler.enqueueRequestsFromMapFunc is"},
}

// requests is a queue that records the requests.
type requests struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	mu    sync.Mutex
	lines []string
}

func (r *requests) Add(request reconcile.Request) { r.add(request.String()) }

func (r *requests) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *requests) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.lines))
}

// startKind starts a source. wait waits until its handler has the initial list.
func startKind(t *testing.T, c cache.Cache, object client.Object, w watch,
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) (wait func()) {
	t.Helper()
	kind := source.Kind(c, object, w.handler, w.predicates...)
	must(t, kind.Start(t.Context(), queue))
	return func() {
		t.Helper()
		must(t, kind.WaitForSync(t.Context()))
	}
}

func deploymentCache(t *testing.T, server *apitest.Server, options Options) *Cache {
	t.Helper()
	options.Types = fixedTypes{deployments}
	c, err := New(server.Config(), cache.Options{Mapper: deploymentMapper()}, options)
	must(t, err)
	start(t, c)
	return c
}

// TestRecognition verifies that nothing is decoded for handlers and predicates that are known to read only
// metadata. For all other handlers, the reason is reported.
func TestRecognition(t *testing.T) {
	server := apitest.New(t, deployments)
	server.Create(t, deployments.GVR, object(deploymentKind, "web", "a"))
	for form, empty := range deploymentForms() {
		t.Run(form, func(t *testing.T) {
			c := deploymentCache(t, server, Options{})
			i, err := c.GetInformer(t.Context(), empty)
			must(t, err)
			decodeReason := func() string {
				all := c.Factory().Informers()[0].Handlers()
				return all[len(all)-1].DecodesBecause
			}
			for name, w := range recognizedWatches(t) {
				if startKind(t, c, empty, w, &requests{})(); decodeReason() != "" {
					t.Errorf("%s: objects are decoded for the reason %q, want no decoding", name,
						decodeReason())
				}
			}
			if _, err := i.AddEventHandler(dynamicinformer.MetadataOnly(make(recorder, 10))); err != nil ||
				decodeReason() != "" {
				t.Errorf("objects are decoded for MetadataOnly: reason %q, %v", decodeReason(), err)
			}
			stored, _ := c.Factory().Informers()[0].Snapshot().Stored("web/a")
			packed := stored.(dynamicinformer.PackedObject)
			if packed.Decoded() != nil || packed.DecodedAs(reflect.TypeOf(empty).Elem()) != nil {
				t.Error("the object was decoded for handlers that read only metadata")
			}
			deletes := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) {}}
			ignoresAdds, err := i.AddEventHandler(deletes)
			must(t, err)
			<-ignoresAdds.HasSyncedChecker().Done()
			if form != "unstructured" && packed.DecodedAs(reflect.TypeOf(empty).Elem()) != nil {
				t.Error("the object was decoded for a handler that has no function for it")
			}
			for name, w := range opaqueWatches {
				if startKind(t, c, empty, w.watch, &requests{})(); !strings.Contains(decodeReason(),
					w.reason) {
					t.Errorf("%s: the reason %q does not contain %q", name, decodeReason(), w.reason)
				}
			}
			if _, err := i.AddEventHandler(make(recorder,
				10)); err != nil || !strings.Contains(decodeReason(), "recorder is not") {
				t.Errorf("the reason of an unknown handler is %q, %v", decodeReason(), err)
			}
		})
	}
	t.Run("Go type", func(t *testing.T) {
		c := deploymentCache(t, server, Options{})
		kind := source.TypedKind(c, &appsv1.Deployment{},
			&handler.TypedEnqueueRequestForObject[*appsv1.Deployment]{})
		queued := &requests{}
		must(t, errors.Join(kind.Start(t.Context(), queued), kind.WaitForSync(t.Context())))
		reason := c.Factory().Informers()[0].Handlers()[0].DecodesBecause
		if !strings.Contains(reason, "receives objects of a Go type") || len(queued.sorted()) != 1 {
			t.Errorf("the reason is %q, and the queued requests are %s, want one", reason, queued.sorted())
		}
	})
}

// metadataHandler is a handler that records the metadata of its objects.
type metadataHandler struct{ *requests }

func (metadataHandler) ReadsOnlyMetadata() {}

func (v metadataHandler) describe(call string, objects ...client.Object) {
	for _, o := range objects {
		copied := o.DeepCopyObject()
		text, err := json.Marshal([]any{o.GetNamespace(), o.GetName(), o.GetUID(), o.GetLabels(),
			o.GetAnnotations(), o,
			o.GetOwnerReferences(), o.GetFinalizers(), o.GetGeneration(), o.GetCreationTimestamp(),
			o.GetDeletionTimestamp(), o.GetDeletionGracePeriodSeconds(), o.GetGenerateName(), o.GetSelfLink(),
			len(o.GetManagedFields()), o.GetObjectKind().GroupVersionKind(), o.GetResourceVersion(), copied})
		call += fmt.Sprintf("\n%T %s %v", copied, text, err)
	}
	v.add(call)
}

func (v metadataHandler) Create(_ context.Context, e event.CreateEvent,
	_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	v.describe(fmt.Sprint("create ", e.IsInInitialList), e.Object)
}

func (v metadataHandler) Update(_ context.Context, e event.UpdateEvent,
	_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	v.describe("update", e.ObjectOld, e.ObjectNew)
}

func (v metadataHandler) Delete(_ context.Context, e event.DeleteEvent,
	_ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	v.describe(fmt.Sprint("delete ", e.DeleteStateUnknown), e.Object)
}

func (metadataHandler) Generic(context.Context, event.GenericEvent,
	workqueue.TypedRateLimitingInterface[reconcile.Request]) {
}

// TestMetadataHandlersAgreeWithStock applies the same changes to the stock cache and to this one. Recognized
// handlers queue the same requests and receive the same metadata, also of compressed objects.
func TestMetadataHandlersAgreeWithStock(t *testing.T) {
	for storage, options := range map[string]Options{"default": {}, "compressed": {Storage: dynamicinformer.Storage{
		Mode: dynamicinformer.StorageCompressed, Compression: s2.New()}}} {
		for form, empty := range deploymentForms() {
			t.Run(storage+"/"+form, func(t *testing.T) {
				server := apitest.New(t, deployments)
				random := rand.New(rand.NewPCG(1, 2))
				for n := range 250 { // enough for compression
					server.Create(t, deployments.GVR, randomDeployment(random, fmt.Sprint("o", n)))
				}
				stock, err := cache.New(server.Config(), cache.Options{Mapper: deploymentMapper()})
				must(t, err)
				start(t, stock)
				ours := deploymentCache(t, server, options)
				queues := map[string][2]*requests{}
				all := recognizedWatches(t)
				all["viewed"] = watch{}
				var waits []func()
				for name, w := range all {
					queues[name] = [2]*requests{{}, {}}
					for k, c := range []cache.Cache{stock, ours} {
						if name == "viewed" {
							w.handler = metadataHandler{queues[name][k]}
						}
						waits = append(waits, startKind(t, c, empty, w, queues[name][k]))
					}
				}
				for _, wait := range waits {
					wait()
				}
				if n := ours.Factory().Stats()[0].Compressed; (n > 0) != (storage == "compressed" && form != "metadata") {
					t.Fatalf("%d objects are compressed with the storage of this test", n)
				}
				for range 100 {
					server.Update(t, deployments.GVR,
						randomDeployment(random, fmt.Sprint("o", random.IntN(250))))
				}
				for n := range 10 {
					server.Delete(t, deployments.GVR, "web", fmt.Sprint("o", n))
				}
				server.Create(t, deployments.GVR, randomDeployment(random, "last"))
				for name, pair := range queues {
					compareQueues(t, ours, name, pair)
				}
			})
		}
	}
}

// compareQueues waits until two queues have the same requests, once or more if events are merged.
func compareQueues(t *testing.T, ours *Cache, name string, queues [2]*requests) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		must(t, ours.Factory().Informers()[0].Flush(t.Context()))
		stock, got := queues[0].sorted(), queues[1].sorted()
		if name == "object" { // waiting events of this handler are merged
			stock, got = slices.Compact(stock), slices.Compact(got)
		}
		if slices.Equal(stock, got) {
			return
		}
		if time.Now().After(deadline) {
			n := 0
			for n < min(len(stock), len(got))-1 && stock[n] == got[n] {
				n++
			}
			t.Fatalf("%s: %d requests with the stock cache, %d with this cache; first difference:\n%s\n%s",
				name,
				len(stock), len(got), append(stock, "")[n], append(got, "")[n])
		}
	}
}

// randomDeployment returns an object with random metadata.
func randomDeployment(random *rand.Rand, name string) *unstructured.Unstructured {
	u := object(deploymentKind, "web", name)
	values := func() map[string]string {
		return map[string]string{"a": fmt.Sprint(random.IntN(2)), "b": "\"\\ü"}
	}
	if random.IntN(3) > 0 {
		u.SetLabels(map[string]string{"a": fmt.Sprint(random.IntN(2))})
	}
	if random.IntN(3) > 0 {
		u.SetAnnotations(values())
	}
	if random.IntN(3) == 0 {
		u.SetGenerateName("o")
	}
	for n := range random.IntN(3) {
		reference := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment",
			Name: fmt.Sprint("owner", random.IntN(5)), UID: "1"}
		if n == 0 {
			reference.Controller, reference.BlockOwnerDeletion = new(random.IntN(2) == 0), new(true)
		}
		u.SetOwnerReferences(append(u.GetOwnerReferences(), reference))
	}
	u.Object["spec"] = map[string]any{"replicas": int64(random.IntN(3)),
		"selector": map[string]any{"matchLabels": map[string]any{"a": strings.Repeat("b", 500)}}, "template": map[string]any{}}
	return u
}

// TestInitialListHasLowPriority checks the priority that recognized handlers give to objects of the initial
// list.
func TestInitialListHasLowPriority(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"), configMap("web", "b"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	queue := priorityqueue.New("test", func(o *priorityqueue.Opts[reconcile.Request]) {
		o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	})
	defer queue.ShutDown()
	startKind(t, c, emptyForms()["typed"], watch{forObject, []predicate.Predicate{generationChanged}}, queue)()
	for range 2 {
		if _, priority, _ := queue.GetWithPriority(); priority != handler.LowPriority {
			t.Errorf("priority of an object of the initial list = %d, want handler.LowPriority", priority)
		}
	}
}
