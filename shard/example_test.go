package shard_test

import (
	"context"
	"fmt"

	"github.com/crdcache/crdcache/readapi/testcluster"
	"github.com/crdcache/crdcache/shard"
)

func ExampleMember() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	if err != nil {
		panic(err)
	}
	member, err := shard.New(shard.Options{Config: cluster.Config(), Namespace: "default", Name: "example", Shards: 4})
	if err != nil {
		panic(err)
	}
	held := 0
	err = member.Run(ctx, shard.Handler{
		Acquired: func(tenures []*shard.Tenure) {
			if held += len(tenures); held == member.Shards() {
				fmt.Println("alone, it holds all", held)
				cancel()
			}
		},
		Drain: func(_ context.Context, tenure *shard.Tenure) {
			// Wait for the work in tenure.Shard() here.
		},
	})
	fmt.Println("ended:", err)
	// Output:
	// alone, it holds all 4
	// ended: <nil>
}

func ExampleStatic() {
	ordinal, err := shard.Ordinal("web-2") // the name of the pod
	if err != nil {
		panic(err)
	}
	fixed, err := shard.Static(ordinal, 4, shard.DefaultShards)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_ = fixed.Run(ctx, shard.Handler{Acquired: func(tenures []*shard.Tenure) {
		fmt.Println("shards", tenures[0].Shard(), "to", tenures[len(tenures)-1].Shard())
		cancel()
	}})
	// Output: shards 32 to 47
}
