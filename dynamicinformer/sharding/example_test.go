package sharding_test

import (
	"fmt"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// Find the shard of a namespace among four shards of equal size.
func Example() {
	hash := sharding.Hash("kube-system")
	for shard, hashes := range sharding.Split(4) {
		if hashes.Contains(hash) {
			fmt.Println("kube-system is in shard", shard, "of 4")
		}
	}

	// Output:
	// kube-system is in shard 3 of 4
}
