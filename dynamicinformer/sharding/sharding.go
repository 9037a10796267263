package sharding

import "github.com/crdcache/crdcache/internal/requests"

// Key names the field of an object that is hashed.
type Key = requests.ShardKey

const (
	// ByUID hashes the UID. It spreads objects evenly and independently of each other.
	ByUID = requests.ShardByUID
	// ByNamespace hashes the namespace, so that a shard holds all objects of a namespace, of all types.
	// All cluster-scoped objects share one hash. Namespaces whose names differ only in their last
	// characters have similar hashes, so few large ranges may be filled unevenly.
	ByNamespace = requests.ShardByNamespace
)

// Hash returns the position of a UID or of a namespace in the hash space.
func Hash(value string) uint64 { return requests.ShardHash(value) }

// Range is the part of the hash space from Start up to, but not including, End. An End of zero is the
// end of the hash space, so the zero value is the whole space. A range whose End is not zero and not
// greater than Start is empty.
type Range struct{ Start, End uint64 }

// Contains reports whether the range contains the hash.
func (r Range) Contains(hash uint64) bool { return requests.HashRange(r).Contains(hash) }

// String returns the range in hexadecimal digits: "0x0000000000000000-0x8000000000000000".
func (r Range) String() string { return requests.HashRange(r).String() }

// Split divides the hash space into n consecutive ranges of equal size, as far as possible. It returns
// nil for n below 1.
func Split(n int) []Range {
	inside := requests.SplitHashSpace(n)
	if inside == nil {
		return nil
	}
	ranges := make([]Range, len(inside))
	for i, r := range inside {
		ranges[i] = Range(r)
	}
	return ranges
}

// Filter names the component that removes objects outside the shard. See status.Shard.
type Filter = requests.ShardFilter

const (
	// FilterUnknown: no answer has shown it yet. API servers (as of 1.37) confirm the selector only in
	// lists of built-in types: not in lists of custom resources or metadata, and not in watch-lists.
	FilterUnknown = requests.ShardFilterUnknown
	// FilterServer: the server has confirmed that it applied the selector.
	FilterServer = requests.ShardFilterServer
	// FilterClient: the server sent objects outside the shard, and the informer dropped them.
	FilterClient = requests.ShardFilterClient
)
