package references_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestShard verifies that a reference to an object outside the shard does not dangle, and that an object that
// left the shard has no references.
func TestShard(t *testing.T) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	server := apitest.New(t, apitest.Type{GVR: gvr, Kind: "Secret", Namespaced: true})
	halves := sharding.Split(2)
	in := newObject(secrets, "a", "in", "", nil)
	for n := 0; !halves[0].Contains(sharding.Hash(string(in.GetUID()))); n++ {
		in.SetUID(types.UID(fmt.Sprintf("%d-u-in", n)))
	}
	server.Create(t, gvr, withOwner(in, secrets, "out", "u-out"))
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
	informer, err := factory.ForResource(gvr)
	if err != nil {
		t.Fatal(err)
	}
	graph := references.New()
	defer graph.Close()
	registration, err := graph.Add(references.InformerSource{Type: secrets, Informer: informer})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-registration.Synced()
	waitForSync(graph)
	if got := formatReferences(graph.Dangling()); len(got) > 0 {
		t.Errorf("Dangling with a target outside of the shard = %q, want none", got)
	}
	var unchecked []string
	for _, u := range graph.Unchecked() {
		unchecked = append(unchecked, u.String())
	}
	if diff := cmp.Diff([]string{"1 reference to Secret is not checked: only a shard of them is followed"},
		unchecked); diff != "" {
		t.Errorf("Unchecked (-want +got):\n%s", diff)
	}
	shard.SetRanges(halves[1])
	if err := informer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := graph.Stats(); s.References != 0 {
		t.Errorf("Stats after the object left the shard = %+v, want no references", s)
	}
}
