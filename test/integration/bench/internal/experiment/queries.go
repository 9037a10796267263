package experiment

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

//go:embed queries.yaml
var queryConfig []byte

// matchCount is the number of objects that the queries find, and of dangling references.
const matchCount = 10

// measureQueries measures queries over generated objects.
func measureQueries(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	config, err := indexers.Parse(indexers.Source{Name: "bench.yaml", Data: queryConfig})
	check(err)
	objects := make([]any, task.Objects)
	for i := range objects {
		objects[i] = newCertificate(i)
	}
	querier := newQuerier(config.Resources[0], objects)
	graph := newGraph(ctx, config.Resources[0], objects)
	defer graph.Close()
	findKeys := func(q query.Query, options query.Options) func(int) error {
		return func(int) error {
			found, err := querier.Keys(ctx, q, options)
			if err == nil && len(found) != matchCount {
				err = fmt.Errorf("%d keys were found, want %d", len(found), matchCount)
			}
			return err
		}
	}
	findObjects := func(q query.Query, options query.Options) func(int) error {
		return func(int) error {
			r, err := querier.Query(ctx, q, options)
			if err == nil && len(r.Objects()) != matchCount {
				err = fmt.Errorf("%d objects were found, want %d", r.Len(), matchCount)
			}
			return err
		}
	}
	checkDangling := func(int) error {
		if n := len(graph.Dangling()); n != matchCount {
			return fmt.Errorf("%d references dangle, want %d", n, matchCount)
		}
		return nil
	}
	metrics := map[string]float64{}
	for _, queryCase := range []struct {
		metric string
		run    func(int) error
	}{ // keys first, because queries that read objects leave decoded copies in the cache
		{QueryKeys, findKeys(query.Eq("team", "few"), query.Options{})},
		{QuerySortedKeys, findKeys(query.Eq("team", "few"), query.Options{SortBy: "expiry"})},
		{QueryFew, findObjects(query.Eq("team", "few"), query.Options{})},
		{QuerySorted, findObjects(query.Eq("team", "few"), query.Options{SortBy: "expiry"})},
		{QueryDangling, checkDangling},
	} {
		metrics[queryCase.metric] = averageCost(task.Budget, queryCase.run)
	}
	return Outcome{Metrics: metrics}, nil
}

// newCertificate returns object i. The first matchCount objects have the team "few" and refer to an issuer
// that does not exist.
func newCertificate(i int) *unstructured.Unstructured {
	team, issuer := "many", "ca"
	if i < matchCount {
		team, issuer = "few", "none"
	}
	expiry := time.Date(2026, 1, 1, 0, i*7919%100_000, 0, 0, time.UTC)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"namespace": fmt.Sprint("ns", i%100), "name": fmt.Sprint("cert", i),
			"uid": fmt.Sprint("u", i), "resourceVersion": fmt.Sprint(i)},
		"spec": map[string]any{"team": team, "issuerRef": map[string]any{"name": issuer},
			"text": strings.Repeat("x", 800)},
		"status": map[string]any{"notAfter": expiry.Format(time.RFC3339)},
	}}
}

// newQuerier returns a querier over a cache of objects.
func newQuerier(r *indexers.Resource, objects []any) *query.Querier {
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{}})
	check(err)
	handle, err := factory.Acquire(schema.GroupVersionResource{Group: r.Match.Group, Version: "v1",
		Resource: "certificates"}, dynamicinformer.ResourceOptions{Indexes: indexers.Compile(r)})
	check(err)
	check(handle.Informer().GetIndexer().Replace(objects, "1"))
	return query.New(bind.ForInformer(handle.Informer()), r.Indexes...)
}

// newGraph returns a graph of the objects and of one issuer in each namespace.
func newGraph(ctx context.Context, r *indexers.Resource, objects []any) *references.Graph {
	graph := references.New()
	certs, issuers := &fakeInformer{}, &fakeInformer{}
	for _, m := range []references.InformerSource{
		{Type: references.Type{Group: r.Match.Group, Resource: "certificates", Kind: "Certificate",
			Namespaced: true}, References: r.References, Informer: certs},
		{Type: references.Type{Group: r.Match.Group, Resource: "issuers", Kind: "Issuer", Namespaced: true},
			Informer: issuers},
	} {
		_, err := graph.Add(m)
		check(err)
	}
	for i := range 100 {
		issuer := newCertificate(i)
		issuer.SetName("ca")
		issuers.OnAdd(issuer, true)
	}
	for _, object := range objects {
		certs.OnAdd(object, true)
	}
	check(graph.WaitForSync(ctx))
	return graph
}

// fakeInformer forwards events to a handler like a synced informer.
type fakeInformer struct {
	cache.ResourceEventHandler
	cache.ResourceEventHandlerRegistration
}

func (t *fakeInformer) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	t.ResourceEventHandler = handler
	return t, nil
}

func (t *fakeInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

func (t *fakeInformer) HasSyncedChecker() cache.DoneChecker { return t }

// Name implements cache.DoneChecker.
func (t *fakeInformer) Name() string { return "fake" }

func (t *fakeInformer) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
