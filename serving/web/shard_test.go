package web

import (
	"context"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestObjectsThatLeaveTheShard verifies that an object that leaves the shard is not shown as deleted. The
// plan of a query mentions the shard.
func TestObjectsThatLeaveTheShard(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	cluster, err := testcluster.New(ctx,
		testcluster.Options{Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{t: t, cluster: cluster}
	halves := sharding.Split(2)
	shard := dynamicinformer.NewShard(sharding.ByNamespace, halves...)
	s.factory, err = dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Defaults: dynamicinformer.ResourceOptions{Shard: shard}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.factory.Shutdown(context.Background()) })
	informer, err := s.factory.ForResource(workloads)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := informer.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	s.serve(Source{Factory: s.factory}, Options{})
	s.client = s.browser()
	events := s.openStream("changes", "1", "match", "payments/ledger")
	awaitEvent(t, events, "types", anyText)
	rest := halves[:1]
	if sharding.Hash("payments") < halves[0].End {
		rest = halves[1:]
	}
	shard.SetRanges(rest...)
	data := awaitEvent(t, events, "changes",
		func(data string) bool { return strings.Contains(data, `"op":"departed"`) })
	if strings.Contains(data, "deleted") || strings.Contains(data, "fields") {
		t.Errorf("change of an object that left the shard: %s, want neither a deletion nor fields", data)
	}
	plan := strings.Join(getJSON[tableAnswer](s, "table", "type", workloadsID).Plan, " ")
	if want := "This is a shard (by metadata.namespace, 1 range: " + rest[0].String() +
		")"; !strings.Contains(plan, want) {
		t.Errorf("the plan %q lacks %q", plan, want)
	}
}
