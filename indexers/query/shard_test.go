package query_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := factory.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	querier := query.New(query.ForInformer(informer))
	if s := querier.Freshness(); !s.Synced {
		t.Errorf("Freshness of a complete shard = %+v, want Synced", s)
	}
	all, err := querier.Query(t.Context(), query.All(), query.Options{AllowScan: true})
	if err != nil {
		t.Fatal(err)
	}
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
