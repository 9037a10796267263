package bind_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/testcluster"
)

func parse(t testing.TB, resources string) *indexers.Config {
	t.Helper()
	text := "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n" + resources
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
	noError(t, err)
	return c
}

const (
	widgetsByColor = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .spec.color}]
`
	widgetsBySize = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .metadata.name}, {name: size, path: .spec.size, type: Int, order: Sorted}]
`
	widgetsDecoded = `  - name: widgets
    match: {group: example.com, resource: widgets}
    storage: {mode: Object}
    indexes: [{name: color, path: .spec.color}]
`
	anyExample = `  - name: all
    match: {group: "*.example.com", resource: "*"}
    optional: true
    indexes: [{name: color, path: .spec.color}]
`
)

// fixture is a test cluster with a running tracker and factory.
type fixture struct {
	*testing.T
	ctx     context.Context
	cluster *testcluster.Cluster
	server  *rest.Config
	tracker *discovery.Tracker
	factory *dynamicinformer.Factory
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureWithMiddleware(t, func(server http.Handler) http.Handler { return server })
}

// newFixtureWithMiddleware is newFixture with an HTTP middleware around the server.
func newFixtureWithMiddleware(t *testing.T, middleware func(http.Handler) http.Handler) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	cluster := cluster()
	server := readapi.Config(middleware(cluster))
	tracker, err := discovery.NewTracker(server, discovery.TrackerOptions{})
	noError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		if err := tracker.Run(ctx); err != nil { // ended by cancel
			t.Error(err)
		}
	})
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server,
		Types: tracker.Types(), Linger: -1})
	noError(t, err)
	noError(t, factory.Start(ctx))
	t.Cleanup(func() {
		if err := factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		running.Wait()
	})
	return &fixture{t, ctx, cluster, server, tracker, factory}
}

func (f *fixture) delete(gvr schema.GroupVersionResource, namespace, name string) {
	f.Helper()
	resource := f.cluster.Client().Resource(gvr).Namespace(namespace)
	if err := resource.Delete(f.ctx, name, metav1.DeleteOptions{}); err != nil {
		f.Fatal(err)
	}
}

// follow binds a config to the tracker's types.
func (f *fixture) follow(config *indexers.Config) *bind.Binding {
	f.Helper()
	b, err := bind.New(f.factory, config, bind.Options{
		OnProblem: func(name string, err error) { f.Errorf("%s: %v", name, err) }})
	if err != nil {
		f.Fatal(err)
	}
	stop := b.Follow(f.tracker)
	f.Cleanup(func() {
		stop()
		b.Close()
	})
	return b
}

// eventually waits until the check passes.
func (f *fixture) eventually(condition string, check func() bool) {
	f.Helper()
	for !check() {
		select {
		case <-f.ctx.Done():
			f.Fatalf("timed out waiting until %s", condition)
		case <-time.After(time.Millisecond):
		}
	}
}

// queryReturns reports whether a query returns exactly these objects.
func queryReturns(b *bind.Binding, resource, queryText string, want ...string) bool {
	querier, err := b.Querier(resource)
	if err != nil {
		return false
	}
	q, err := query.Parse(queryText)
	if err != nil {
		panic(err)
	}
	keys, err := querier.Keys(context.Background(), q, query.Options{})
	return err == nil && slices.Equal(keys, want)
}
