// Package filesource serves manifests like a cluster. It reads files into an apiserver.Storage and provides a
// rest.Config whose transport answers from it, so that informers and discovery work as with a cluster.
//
// # Input
//
// Paths are files, directories with all subdirectories, and "-" for standard input, in all formats of
// internal/manifest, compressed or not. In directories only names that end in .yaml, .yml, .json or .jsonl
// count, optionally followed by .gz or .zst. Hidden files are ignored.
//
// Built-in kinds have the types of a cluster. CustomResourceDefinitions define their types in any order of
// files. For other kinds the type is inferred from the objects, with a warning when it is used. Only types
// with objects or a definition are served.
//
// A single snapshot is served like the API server from which it was saved, including types, tables and
// discovery. Types that the server refused have the same error. Types that were not saved are forbidden, so
// that they do not look empty.
//
// # Consistency
//
// Objects from a cluster keep their resource version and all other fields. Follow turns changes of files into
// changes of objects. A file that cannot be read, or is empty because it is being written, keeps its previous
// objects. If the system cannot watch a directory, or its parent was deleted, it is polled every two seconds
// (TestFollowUnwatched, TestFollowLostDirectory).
//
// # Concurrency
//
// A Source is safe for concurrent use.
package filesource
