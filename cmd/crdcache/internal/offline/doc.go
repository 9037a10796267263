// Package offline serves manifests as if they were on a cluster: it reads files into a readapi.Storage, and
// gives clients a rest.Config whose transport answers from it, so that informers and discovery work as they
// do on a cluster.
//
// # What is read
//
// Files, directories with all below them, and "-" for standard input: whatever internal/manifest reads,
// compressed or not. In directories only .yaml, .yml, .json and .jsonl files count, also with .gz or .zst
// behind that, and names that begin with a dot do not.
//
// Objects of built-in kinds have the type that a cluster has; CustomResourceDefinitions define theirs,
// whatever the order of files is; for other kinds a type is made up from what the objects show, with a
// warning when somebody uses it. Only types that something is there for are served.
//
// A snapshot, which stands alone, is served as package recorded does.
//
// # Consistency
//
// Objects that come from a cluster keep their resource version, and everything else as it was. Follow turns
// changes of the files into changes of the objects. A file that cannot be read, or is empty as one that is
// about to be written, keeps what it had last. Where the system does not tell of changes, because it has no
// watcher left or the folder around the files is gone, they are looked for every two seconds
// (TestFollowUnwatched, TestFollowLostDirectory).
//
// # Concurrency
//
// A Source is safe for concurrent use.
package offline
