// Package snapshot stores the state of a cluster in one file: objects, their types, and the server's table
// rows. docs/design/persistence.md shows the bytes.
//
// The objects of a type are consistent at one resource version. A type that could not be read is stored with
// the reason.
//
// Everything is safe for concurrent use, except a TypeWriter, which one goroutine fills. Readers and writers
// have one block of a type in memory, about 256 KiB. A type whose objects were not added in the order of
// their keys is read completely.
package snapshot
