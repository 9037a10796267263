package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	stock "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/test/integration/harness"
)

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
		{Mode: dynamicinformer.StorageCompressed, Compression: s2.New(s2.Options{})},
		{Mode: dynamicinformer.StorageObject},
		{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(s2.Options{}), CompressLists: true},
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
