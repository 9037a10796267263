// Package store keeps the objects of one type in memory, with indexes.
//
// # Purpose
//
// A Store holds what a reflector writes, for any number of readers. A Form says how objects are kept:
// decoded, as JSON, or compressed.
//
// # Consistency
//
// The content is immutable: each write makes a new Snapshot, which shares all but a few nodes with the one
// before. A reader that takes several looks at one Snapshot sees one moment. Replace and AddIndexers show all
// they do at once.
//
// # Concurrency
//
// Everything is safe for concurrent use. Readers take no lock. Writers take turns; index functions run, and
// objects are packed and decoded, outside their lock.
//
// # Memory
//
// Beside the item, an object costs a row of 48 bytes (key, item, index values) and its place in the tree,
// about 13 bytes; an index costs about 14 bytes for each object that shares a value with others, and about 40
// plus the value for each that does not. Stats tells.
package store
