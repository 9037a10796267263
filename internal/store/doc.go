// Package store stores the objects of one type in memory, with indexes.
//
// # Purpose
//
// A Store has one or several writing reflectors and any number of readers. A Format defines how objects are
// stored: decoded, as JSON, or compressed.
//
// # Consistency
//
// The content is immutable. Each write publishes a new Snapshot that shares all but a few nodes with the
// previous one. Reads of one Snapshot are consistent with each other. Replace and AddIndexers publish all
// their changes in one Snapshot.
//
// # Concurrency
//
// All methods are safe for concurrent use. Readers take no lock. Writers are serialized by a lock, but index
// functions run, and objects are packed and decoded, outside of it.
//
// # Memory
//
// In addition to its item, an object needs a row of 48 bytes (key, item, index values) and about 13 bytes of
// the tree. An index needs about 14 bytes for each object that shares its value with others, and about 40
// bytes plus the value for each other object. See Stats.
package store
