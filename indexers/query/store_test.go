package query_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var modes = []dynamicinformer.StorageMode{dynamicinformer.StoragePacked, dynamicinformer.StorageObject}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// newCache returns an informer that never runs, with the given indexes.
func newCache(t testing.TB, mode dynamicinformer.StorageMode,
	indexes dynamicinformer.IndexSet) *dynamicinformer.Informer {
	t.Helper()
	return newCacheOf(t, dynamicinformer.ResourceOptions{Storage: dynamicinformer.Storage{Mode: mode},
		Indexes: indexes})
}

// newCacheOf returns an informer that never runs. Tests write to its cache.
func newCacheOf(t testing.TB, options dynamicinformer.ResourceOptions) *dynamicinformer.Informer {
	t.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{}})
	noError(t, err)
	handle, err := factory.Acquire(widgets, options)
	noError(t, err)
	return handle.Informer()
}

func put(t testing.TB, cache *dynamicinformer.Informer, objects ...*unstructured.Unstructured) {
	for _, o := range objects {
		if err := cache.GetIndexer().Add(o); err != nil {
			t.Error(err)
		}
	}
}

func remove(t testing.TB, cache *dynamicinformer.Informer, object *unstructured.Unstructured) {
	if err := cache.GetIndexer().Delete(object); err != nil {
		t.Error(err)
	}
}

func TestInformerMatchesModel(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			checkAgainstModel(t, 2, 12, 80, func(t testing.TB,
				objects ...*unstructured.Unstructured) *query.Querier {
				f := functions(t)
				s := newCache(t, mode, f)
				put(t, s, objects...)
				return query.New(cacheSource{s}, f.Indexes()...)
			})
		})
	}
}

// TestMatchesModelAfterChanges verifies that after random writes the indexes are the same as in a new store.
func TestMatchesModelAfterChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	f := functions(t)
	s := newCache(t, dynamicinformer.StoragePacked, f)
	querier := query.New(cacheSource{s}, f.Indexes()...)
	objects := map[string]*unstructured.Unstructured{}
	for round := range 400 {
		u := randomWidget(random, random.IntN(40))
		u.SetResourceVersion(strconv.Itoa(round))
		if random.IntN(4) == 0 {
			delete(objects, keyOf(u))
			remove(t, s, u)
		} else {
			objects[keyOf(u)] = u
			put(t, s, u)
		}
		if round%10 > 0 {
			continue
		}
		var all []*unstructured.Unstructured
		for _, o := range objects {
			all = append(all, o)
		}
		q, p := randomQuery(random, 2)
		checkQuery(t, random, querier, q, expectedKeys(all, p), all)
		if t.Failed() {
			t.Fatalf("the failures are for the query %s after round %d", q, round)
		}
	}
}

// TestQueriesReadOneSnapshot verifies that a query reads one snapshot: an object that changes constantly has
// exactly one value in each result and on each page.
func TestQueriesReadOneSnapshot(t *testing.T) {
	f := functions(t)
	s := newCache(t, dynamicinformer.StoragePacked, f)
	querier := query.New(cacheSource{s}, f.Indexes()...)
	changingObject := func(round int) *unstructured.Unstructured {
		// both indexes change together
		return newWidget("a/x", []string{"edge", "core"}[round%2], int64(round%2), "gold")
	}
	put(t, s, changingObject(0))
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for round := range 3000 {
			put(t, s, changingObject(round))
		}
		close(done)
	})
	for range 2 {
		wg.Go(func() {
			edge := query.And(query.Eq("team", "edge"), query.Eq("weight", "0"))
			core := query.And(query.Eq("team", "core"), query.Eq("weight", "1"))
			for {
				n, err := querier.Count(t.Context(), query.Or(edge, core), query.Options{})
				if n != 1 || err != nil {
					t.Errorf("Count = %d, %v; want 1", n, err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
}

// TestConcurrentAccess verifies that queries return only matching objects in the right order while other
// goroutines change objects and indexes.
func TestConcurrentAccess(t *testing.T) {
	f := functions(t)
	s := newCache(t, dynamicinformer.StoragePacked, f)
	querier := query.New(cacheSource{s}, f.Indexes()...)
	extraIndexes := make([]*indexers.Index, 0, 4)
	for i := range 4 {
		c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: fmt.Appendf(nil, `{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [{name: extra%d, path: .spec.weight, type: Int, order: Sorted}]}]}}`, i)})
		noError(t, err)
		extraIndexes = append(extraIndexes, c.Resources[0].Indexes[0])
	}
	var wg sync.WaitGroup
	for w := range 2 {
		random := rand.New(rand.NewPCG(uint64(w), 31))
		wg.Go(func() {
			for range 600 {
				u := randomWidget(random, random.IntN(50))
				if random.IntN(5) == 0 {
					remove(t, s, u)
				} else {
					put(t, s, u)
				}
			}
		})
	}
	wg.Go(func() {
		for round := range 40 {
			index := extraIndexes[round%len(extraIndexes)]
			if err := s.AddIndexes(indexers.CompileIndexes(index)); err != nil {
				t.Error(err)
			}
			indexQuerier := query.New(cacheSource{s}, index)
			r, err := indexQuerier.Query(t.Context(), query.Exists(index.Name),
				query.Options{SortBy: index.Name})
			if err != nil {
				t.Error(err)
				return
			}
			var previous int64 = -100
			for _, u := range r.Objects() {
				weight, _, _ := unstructured.NestedInt64(u.Object, "spec", "weight")
				if weight < previous {
					t.Errorf("weight %d comes after %d, want ascending weights", weight, previous)
				}
				previous = weight
			}
			s.RemoveIndexes(index.Name)
		}
	})
	for r := range 2 {
		random := rand.New(rand.NewPCG(uint64(r), 32))
		wg.Go(func() {
			for range 150 {
				q, holds := randomQuery(random, 2)
				result, err := querier.Query(t.Context(), q, query.Options{AllowScan: true, SortBy: "weight",
					Limit: 20, Now: modelNow})
				if err != nil {
					t.Errorf("Query of %s: %v", q, err)
					return
				}
				for k, u := range result.All() {
					if !holds(u) || keyOf(u) != k {
						t.Errorf("Query of %s returned %s, which does not match or has another key", q, k)
					}
				}
				if _, err := querier.Values(t.Context(), "ordered", query.All(),
					query.Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if names := s.Snapshot().IndexNames(); slices.ContainsFunc(names,
		func(n string) bool { return n == "extra0" }) {
		t.Errorf("indexes after the removal of extra0 = %v, want no extra0", names)
	}
}

// TestFewObjectsAndALongRange verifies the results of queries with few candidates and a long range of another
// index. Such plans test the candidates one by one.
func TestFewObjectsAndALongRange(t *testing.T) {
	for _, mode := range modes {
		name := mode.String()
		f := functions(t)
		s := newCache(t, mode, f)
		var objects []*unstructured.Unstructured
		for i := range 600 {
			team := "core"
			if i%150 == 0 {
				team = "edge"
			}
			objects = append(objects, newWidget(fmt.Sprintf("a/w%03d", i), team, int64(i), "gold"))
		}
		put(t, s, objects...)
		querier := query.New(cacheSource{s}, f.Indexes()...)
		for text, want := range map[string][]string{
			"team=edge && weight>=100":                   {"a/w150", "a/w300", "a/w450"},
			"team=edge && weight<400":                    {"a/w000", "a/w150", "a/w300"},
			"team=edge && weight in [1, 450)":            {"a/w150", "a/w300"},
			"team=edge && !(weight<400)":                 {"a/w450"},
			"team=edge && (weight<100 || weight>400)":    {"a/w000", "a/w450"},
			"team=edge && ordered>gold/150":              {"a/w300", "a/w450"},
			"team=edge && ordered":                       {"a/w000", "a/w150", "a/w300", "a/w450"},
			"team=edge && weight>=100 && weight<1000000": {"a/w150", "a/w300", "a/w450"},
		} {
			q, err := query.Parse(text)
			noError(t, err)
			for _, options := range []query.Options{{}, {SortBy: "weight"}} {
				got, err := querier.Keys(t.Context(), q, options)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: Keys of %s = %v, %v; want %v", name, text, got, err, want)
				}
			}
		}
		plan, err := querier.Explain(query.Greater("weight", "99"), query.Options{})
		if err != nil || plan.Start[0].Objects < 500 {
			t.Errorf("%s: Explain of a long range = %v, %v; want at least 500 objects", name, plan, err)
		}
	}
}

// TestFreshnessOfIncompleteShard verifies that Freshness is not Synced while an added range of the shard is
// not listed, although the informer stays synced. A plan contains the ranges.
func TestFreshnessOfIncompleteShard(t *testing.T) {
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
		"kind": "Widget"}}
	object.SetNamespace("ns")
	object.SetName("x")
	object.SetUID(types.UID("one"))
	server.Create(t, widgets, object)
	halves := sharding.Split(2)
	shard := dynamicinformer.NewShard(sharding.ByUID, halves[0])
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config(),
		Defaults: dynamicinformer.ResourceOptions{Shard: shard}})
	noError(t, err)
	defer func() {
		if err := factory.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	informer, err := factory.ForResource(widgets)
	noError(t, err)
	noError(t, factory.Start(t.Context()))
	noError(t, informer.WaitForSync(t.Context()))
	querier := query.New(bind.ForInformer(informer))
	if s := querier.Freshness(); !s.Synced {
		t.Errorf("Freshness of a complete shard = %+v, want Synced", s)
	}
	all, err := querier.Query(t.Context(), query.All(), query.Options{AllowScan: true})
	noError(t, err)
	if text := all.Plan.String(); !strings.Contains(text, "shard  by metadata.uid, 1 range: "+
		halves[0].String()+"; all numbers") {
		t.Errorf("the plan does not contain the range of the shard:\n%s", text)
	}
	for _, verb := range []string{"list", "watch-list"} {
		server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/widgets", Verb: verb, Status: 500})
	}
	shard.SetRanges(halves...)
	if s := querier.Freshness(); s.Synced || !informer.HasSynced() {
		t.Errorf("Freshness with an added range = %+v, HasSynced = %v; want not Synced and true", s,
			informer.HasSynced())
	}
	shard.SetRanges(halves[0])
	if s := querier.Freshness(); !s.Synced {
		t.Errorf("Freshness after the range is removed = %+v, want Synced", s)
	}
}
