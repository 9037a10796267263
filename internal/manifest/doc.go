// Package manifest reads Kubernetes objects from YAML and JSON text: several documents in a stream, Lists
// of any kind, and output of kubectl get, plain or compressed with gzip or zstd, and archives of such files.
// Read reads a text, and ReadFiles files and directories.
//
// Lists of JSON, and of YAML above 1 MiB, are read item by item, so a list can be larger than memory. Any
// other document, and every item, has at most MaxDocument bytes. Aliases can make a document at most ten
// times as large as its text. Archives are read member by member; only a zip archive without random access is
// buffered (TestArchiveBounds).
package manifest
