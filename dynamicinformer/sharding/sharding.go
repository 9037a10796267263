package sharding

import (
	"fmt"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// LeftShardHandler is an event handler that also receives objects that leave the shard. Such objects still
// exist on the server, so do not undo work that was done for them. OnLeftShard is called in order with the
// other methods. An informer finds the method through the wrappers of the package dynamicinformer; other
// wrappers must forward it.
type LeftShardHandler interface {
	cache.ResourceEventHandler
	// OnLeftShard receives the last observed state of an object that left the shard.
	OnLeftShard(obj any)
}

// Key names the field of an object that is hashed.
type Key string

const (
	// ByUID hashes the UID. It spreads objects evenly and independently of each other.
	ByUID Key = "metadata.uid"
	// ByNamespace hashes the namespace, so that a shard holds all objects of a namespace, of all types. All
	// cluster-scoped objects share one hash. Similar names, such as team-1 and team-2, have similar hashes. A
	// few large ranges may then be filled unevenly.
	ByNamespace Key = "metadata.namespace"
)

// Hash returns the hash of an object's field.
func (k Key) Hash(obj metav1.Object) uint64 {
	if k == ByNamespace {
		return Hash(obj.GetNamespace())
	}
	return Hash(obj.GetUID())
}

// Hash returns the position of a UID or of a namespace in the hash space. It allocates nothing, unlike
// hash/fnv.
func Hash[T ~string | ~[]byte](value T) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * prime
	}
	return hash
}

// Range is the part of the hash space from Start up to, but not including, End. An End of zero is the end of
// the hash space, so the zero value is the whole space. A range is empty if its End is neither zero nor
// greater than Start.
type Range struct{ Start, End uint64 }

// Contains reports whether the range contains the hash.
func (r Range) Contains(hash uint64) bool { return hash >= r.Start && hash <= r.End-1 }

// String returns the range in hexadecimal digits: "0x0000000000000000-0x8000000000000000".
func (r Range) String() string {
	if r.End == 0 {
		return fmt.Sprintf("0x%016x-0x10000000000000000", r.Start)
	}
	return fmt.Sprintf("0x%016x-0x%016x", r.Start, r.End)
}

// Split divides the hash space into n consecutive ranges of equal size, as far as possible. It returns
// nil for n below 1.
func Split(n int) []Range {
	var ranges []Range
	start := uint64(0)
	for i := range n {
		end := uint64(0) // the end of the hash space
		if i+1 < n {
			end, _ = bits.Div64(uint64(i+1), 0, uint64(n)) // 2^64*(i+1)/n
		}
		ranges = append(ranges, Range{start, end})
		start = end
	}
	return ranges
}

// Filter names the component that removes objects outside the shard. See status.Shard.
type Filter string

const (
	// FilterUnknown: no answer has shown it yet. API servers (as of 1.37) confirm the selector only in
	// lists of built-in types: not in lists of custom resources or metadata, and not in watch-lists.
	FilterUnknown Filter = ""
	// FilterServer: the server has confirmed that it applied the selector.
	FilterServer Filter = "server"
	// FilterClient: the server sent objects outside the shard, and the informer dropped them.
	FilterClient Filter = "client"
)
