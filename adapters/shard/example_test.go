package shard_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/test/testcluster"
)

func ExampleMember() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	member, err := shard.New(shard.Options{Config: cluster.Config(), Namespace: "default",
		Name: "example", Shards: 4})
	must(err)
	held := 0
	err = member.Run(ctx, shard.Handler{
		Acquired: func(ownerships []*shard.Ownership) {
			if held += len(ownerships); held == member.Shards() {
				fmt.Println("alone, it holds all", held)
				cancel()
			}
		},
		Drain: func(_ context.Context, ownership *shard.Ownership) {
			// Wait for the work in ownership.Shard() here.
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// alone, it holds all 4
	// ended: <nil>
}

// Without a manager, the informers of a factory contain the objects of the replica's shards.
func ExampleHandler() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	ownShard := dynamicinformer.NewShard(sharding.ByUID) // of nothing, until shards are acquired
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: cluster.Config(), Defaults: dynamicinformer.ResourceOptions{Shard: ownShard},
	})
	must(err)
	defer factory.Shutdown(context.Background())
	namespaces, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	must(err)
	must(factory.Start(ctx))
	member, err := shard.New(shard.Options{Config: cluster.Config(), Namespace: "default",
		Name: "example", Shards: 4})
	must(err)

	ranges := sharding.Split(member.Shards()) // shard k is ranges[k]
	rangeByShard := map[int]sharding.Range{}
	var lock sync.Mutex // Drain is called for several shards at a time
	changeRanges := func(change func()) (all bool) {
		lock.Lock()
		defer lock.Unlock()
		change()
		ownShard.SetRanges(slices.Collect(maps.Values(rangeByShard))...)
		return len(rangeByShard) == member.Shards()
	}
	err = member.Run(ctx, shard.Handler{
		Acquired: func(ownerships []*shard.Ownership) { // must not block
			all := changeRanges(func() {
				for _, ownership := range ownerships {
					rangeByShard[ownership.Shard()] = ranges[ownership.Shard()]
				}
			})
			if all {
				go func() { // ended with ctx
					err := namespaces.WaitForShard(ctx) // work may begin
					fmt.Println(slices.Sorted(slices.Values(namespaces.GetStore().ListKeys())), err)
					cancel()
				}()
			}
		},
		Drain: func(_ context.Context, ownership *shard.Ownership) {
			// Wait for the work in ownership.Shard() here.
			changeRanges(func() { delete(rangeByShard, ownership.Shard()) })
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// [default kube-node-lease kube-public kube-system] <nil>
	// ended: <nil>
}

func ExampleStatic() {
	ordinal := 2 // in the label apps.kubernetes.io/pod-index of the pod
	fixed, err := shard.Static(ordinal, 4, shard.DefaultShards)
	must(err)
	ctx, cancel := context.WithCancel(context.Background())
	_ = fixed.Run(ctx, shard.Handler{Acquired: func(ownerships []*shard.Ownership) {
		fmt.Println("shards", ownerships[0].Shard(), "to", ownerships[len(ownerships)-1].Shard())
		cancel()
	}})
	// Output: shards 32 to 47
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
