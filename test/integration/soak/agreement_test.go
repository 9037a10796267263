package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	stock "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// patience limits every wait after the faults have ended. It is far longer than the longest pause between two
// attempts.
const patience = 5 * time.Minute

// agreementTimes has durations after the end of the faults: until all types agreed with the server and their
// status was healthy, and until the caches of the shared types agreed, for both libraries.
type agreementTimes struct{ All, Ours, Theirs time.Duration }

// awaitAgreement waits until all caches agree with the server, and then checks the handlers' events.
func (w *fixture) awaitAgreement() {
	w.Helper()
	start := time.Now()
	for _, h := range w.witnesses {
		h.Unblock()
	}
	w.releaseTemporaryInformers()
	timeUntil := func(compare func(context.Context, *kind) error) chan time.Duration {
		done := make(chan time.Duration, 1)
		go func() { // ended by patience
			for _, k := range w.sharedKinds() {
				w.eventually(func(ctx context.Context) error { return compare(ctx, k) })
			}
			done <- time.Since(start)
		}()
		return done
	}
	ours, theirs := timeUntil(w.compareCache), timeUntil(w.compareClientGo)
	w.changes.Wait()
	for _, k := range w.kinds {
		w.eventually(func(ctx context.Context) error { return w.compareInformer(ctx, k) })
	}
	o := agreementTimes{All: time.Since(start), Ours: <-ours, Theirs: <-theirs}
	w.outcomes = append(w.outcomes, o)
	for _, h := range w.witnesses {
		w.eventually(func(ctx context.Context) error { return w.compareHandler(ctx, h) })
		for _, line := range h.Violations() {
			w.Error(line)
		}
		h.Forget()
	}
	for _, h := range w.clientGoWitnesses { // client-go reports a replaced object as an update
		w.eventually(func(ctx context.Context) error { return w.compareHandler(ctx, h) })
		w.clientGoInconsistencies += len(h.Violations())
		h.Forget()
	}
	if w.Failed() {
		w.FailNow()
	}
}

// eventually repeats check until it succeeds. If it does not, the test fails but continues.
func (w *fixture) eventually(check func(context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(pace):
		case <-ctx.Done():
			w.Error(err)
			return
		}
	}
}

// listObjects returns the objects of a type by key. It returns none if the type is missing.
func (w *fixture) listObjects(ctx context.Context, k *kind) (map[string]*unstructured.Unstructured, error) {
	all := map[string]*unstructured.Unstructured{}
	if !k.installed.Load() {
		return all, nil
	}
	list, err := w.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		all[list.Items[i].GetNamespace()+"/"+list.Items[i].GetName()] = &list.Items[i]
	}
	return all, nil
}

// compareInformer compares the status and the cache of an informer with the server, and its index with its
// objects.
func (w *fixture) compareInformer(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	want := status.Synced
	if !k.installed.Load() {
		want = status.Pending
	}
	if status := k.informer.Status(); status.State != want {
		return fmt.Errorf("the status of %s is %+v, want %s", k.name, status, want)
	}
	if err := compareObjects(k.name, server, k.informer.GetStore()); err != nil {
		return err
	}
	indexed := 0
	for bucket := range buckets {
		objects, err := k.informer.GetIndexer().ByIndex(k.bucketIndex(), fmt.Sprint(bucket))
		if err != nil {
			return err
		}
		for _, o := range objects {
			if value, _, _ := unstructured.NestedInt64(o.(*unstructured.Unstructured).Object, "spec",
				"bucket"); value != int64(bucket) {
				return fmt.Errorf("%s: the index has %s in bucket %d, want its bucket %d", k.name,
					o.(*unstructured.Unstructured).GetName(), bucket, value)
			}
		}
		indexed += len(objects)
	}
	if indexed != len(server) {
		return fmt.Errorf("%s: the index has %d objects, the server %d", k.name, indexed, len(server))
	}
	return nil
}

// compareCache compares the cache under test with the server, as compareClientGo does for client-go's.
func (w *fixture) compareCache(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	return compareObjects(k.name, server, k.informer.GetStore())
}

func (w *fixture) compareClientGo(ctx context.Context, k *kind) error {
	server, err := w.listObjects(ctx, k)
	if err != nil {
		return err
	}
	return compareObjects("client-go's "+k.name, server, w.clientGoInformers[k].GetStore())
}

// compareObjects compares all objects of a cache with the server's.
func compareObjects(name string, server map[string]*unstructured.Unstructured, store cache.Store) error {
	if keys := store.ListKeys(); len(keys) != len(server) {
		return fmt.Errorf("%s: the cache has %d objects, the server %d", name, len(keys), len(server))
	}
	for key, o := range server {
		cached, exists, err := store.GetByKey(key)
		if err != nil || !exists {
			return fmt.Errorf("%s: the cache lacks %s (%v)", name, key, err)
		}
		if u := cached.(*unstructured.Unstructured); !reflect.DeepEqual(u.Object, o.Object) {
			return fmt.Errorf("%s: the cache has version %s of %s, the server %s", name,
				u.GetResourceVersion(), key, o.GetResourceVersion())
		}
	}
	return nil
}

// compareHandler compares the objects according to a handler's events with the server's list.
func (w *fixture) compareHandler(ctx context.Context, h *handler) error {
	server, err := w.listObjects(ctx, h.kind)
	if err != nil {
		return err
	}
	live := h.LiveObjects()
	for key, o := range server {
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		if want := (harness.WitnessedObject{UID: o.GetUID(), Value: value}); live[key] != want {
			return fmt.Errorf("%s received %s %+v, the server has %+v", h.Name(), key, live[key], want)
		}
	}
	if len(live) != len(server) {
		return fmt.Errorf("%s received %d objects, the server has %d", h.Name(), len(live), len(server))
	}
	return nil
}

type fixture struct {
	*testing.T
	ctx        context.Context
	started    time.Time
	random     *rand.Rand
	admin      dynamic.Interface
	namespaces []string
	proxy      harness.FaultProxy
	kinds      []*kind
	factory    *dynamicinformer.Factory
	types      typesource.Source
	witnesses  []*handler
	// clientGoInformers are client-go's informers of the first permanent types. clientGoWitnesses are their
	// handlers.
	clientGoInformers map[*kind]cache.SharedIndexInformer
	clientGoWitnesses []*handler
	// clientGoInconsistencies counts the inconsistent events of these handlers.
	clientGoInconsistencies int
	// Both count the requests for the types that both libraries follow.
	crdcacheRequests, clientGoRequests *requests
	// temporaryHandles are the handles of temporary informers.
	temporaryHandles []*dynamicinformer.Handle
	// changes are the running changes of definitions.
	changes sync.WaitGroup
	written writeCounts
	// actions counts each fault and each other action.
	actions      map[string]int
	measurements []measurement
	outcomes     []agreementTimes
}

type kind struct {
	name       string
	gvr        schema.GroupVersionResource
	definition *unstructured.Unstructured
	informer   *dynamicinformer.Informer
	// recreated marks a type that is deleted and installed repeatedly. installed is its desired state.
	recreated bool
	installed atomic.Bool
	// index selects one of two sets of indexes.
	index int

	mu sync.Mutex // serializes changes of the definition
}

// handler is a witness of a type's informer.
type handler struct {
	*harness.Witness
	kind   *kind
	handle cache.ResourceEventHandlerRegistration
}

func newFixture(t *testing.T, seed uint64) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // t.Context ends before the cleanups
	t.Cleanup(cancel)
	admin, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{
		started: time.Now(),
		T:       t, ctx: ctx, admin: admin, random: rand.New(rand.NewPCG(seed, 0)), proxy: startProxy(t),
		clientGoInformers: map[*kind]cache.SharedIndexInformer{}, actions: map[string]int{},
	}
	for range 4 {
		w.namespaces = append(w.namespaces, harness.Namespace(t))
	}
	group := harness.Group(t)
	for i := range options.types {
		name := fmt.Sprintf("Storm%d", i)
		definition := harness.NewCRD(group, name)
		w.kinds = append(w.kinds, &kind{
			name: name, recreated: i < options.recreated, definition: definition,
			gvr: schema.GroupVersionResource{Group: group, Version: "v1",
				Resource: fmt.Sprintf("storm%ds", i)},
		})
	}
	for _, k := range w.kinds {
		k.installed.Store(true)
	}
	w.installAll()
	w.populate()
	w.follow()
	w.followWithClientGo()
	return w
}

// follow starts the factory under test with informers of all types and handlers for some.
func (w *fixture) follow() {
	w.Helper()
	config := w.config()
	w.types = harness.RunTracker(w, config).Types()
	config, w.crdcacheRequests = countRequests(config, w.sharedKinds())
	w.factory = w.newFactory(dynamicinformer.Options{Config: config, Types: w.types,
		Resources: w.storagesByType(), Linger: time.Second})
	var err error
	for _, k := range w.kinds {
		if k.informer, err = w.factory.ForResource(k.gvr); err != nil {
			w.Fatal(err)
		}
		if err := k.informer.AddIndexes(indexSet(k.index)); err != nil {
			w.Fatal(err)
		}
	}
	for i := range options.handlers {
		k := w.kinds[i%len(w.kinds)]
		h := &handler{kind: k, Witness: harness.NewWitness(fmt.Sprintf("handler %d of %s", i, k.name),
			func() int { return k.informer.Status().Incarnation })}
		if h.handle, err = k.informer.AddEventHandler(h.Witness); err != nil {
			w.Fatal(err)
		}
		w.witnesses = append(w.witnesses, h)
	}
	if err := w.factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
}

// newFactory returns a factory that is shut down at the end.
func (w *fixture) newFactory(options dynamicinformer.Options) *dynamicinformer.Factory {
	w.Helper()
	factory, err := dynamicinformer.New(options)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		for _, h := range w.witnesses {
			h.Unblock()
		}
		if err := factory.Shutdown(w.ctx); err != nil {
			w.Error(err)
		}
	})
	return factory
}

// storagesByType assigns different storage modes to the types.
func (w *fixture) storagesByType() map[schema.GroupVersionResource]dynamicinformer.ResourceOptions {
	modes := []dynamicinformer.Storage{
		{Mode: dynamicinformer.StoragePacked},
		{Mode: dynamicinformer.StorageCompressed, Compression: s2.New()},
		{Mode: dynamicinformer.StorageObject},
		{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(), CompressLists: true},
	}
	all := map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for n, k := range w.kinds {
		all[k.gvr] = dynamicinformer.ResourceOptions{Storage: modes[n%len(modes)]}
	}
	return all
}

func indexSet(n int) *indexers.Functions {
	config, err := indexers.Parse(indexers.Source{Name: "soak", Data: fmt.Appendf(nil, `
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: soak}
spec:
  resources:
  - name: all
    match: {group: g, version: v1, resource: r}
    indexes: [{name: bucket%d, path: .spec.bucket, type: Int}]
`, n)})
	if err != nil {
		panic(err) // the config is a constant
	}
	resource, _ := config.Resource("all")
	return indexers.Compile(resource)
}

// sharedKinds returns the types that client-go's informers follow as well.
func (w *fixture) sharedKinds() []*kind {
	return w.kinds[options.recreated : options.recreated+options.stock]
}

func (w *fixture) followWithClientGo() {
	w.Helper()
	config, counted := countRequests(w.config(), w.sharedKinds())
	w.clientGoRequests = counted
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.Fatal(err)
	}
	factory := stock.NewDynamicSharedInformerFactory(client, 0)
	for _, k := range w.sharedKinds() {
		informer := factory.ForResource(k.gvr).Informer()
		h := &handler{kind: k, Witness: harness.NewWitness("client-go's of "+k.name, nil)}
		if h.handle, err = informer.AddEventHandler(h.Witness); err != nil {
			w.Fatal(err)
		}
		w.clientGoInformers[k], w.clientGoWitnesses = informer, append(w.clientGoWitnesses, h)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
}
