// Package sharding divides the hash space of objects into ranges. A dynamicinformer.Shard follows the objects
// with hashes in its ranges.
//
// The hash is the one that API servers compute for shard selectors: FNV-1a with 64 bits over an
// object's UID or over its namespace (k8s.io/apimachinery/pkg/sharding).
//
// All functions and methods are safe for concurrent use.
package sharding
