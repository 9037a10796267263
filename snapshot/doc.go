// Package snapshot keeps a moment of a cluster in one file: objects, the types they are of, and what the
// server printed of them, compressed and with checksums.
//
// # Usage
//
// A Writer makes a file, type by type; nothing is at the path before Commit:
//
//	w, err := snapshot.Create("cluster.snapshot", snapshot.About{Tool: "my-operator"})
//	defer w.Abort() // without effect after Commit
//	section := w.Begin(snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos",
//		Kind: "Gizmo", Namespaced: true})
//	err = section.AddCache(informer.Snapshot())
//	err = w.Commit()
//
// A File reads one type, or one object, without the rest:
//
//	f, err := snapshot.Open("cluster.snapshot")
//	defer f.Close()
//	for record, err := range f.Section(gizmos).All {
//		fmt.Println(record.Key)
//	}
//
// The command writes such files with 'crdcache snapshot save', and reads them wherever it takes --from.
//
// # Consistency
//
// The objects of one type are as they were at one resource version, which the file has. Types are read one
// after another, so that those of one may be some seconds older than those of another. A type that could not
// be read is in the file with the reason, and is never taken for one without objects.
//
// # Damage
//
// Every byte that is read is covered by a checksum. A file that is cut, changed or not a snapshot is a
// *FormatError, which says where; one that a newer version has written in a way that this one does not
// understand says so. What reading costs is bounded by the size of the file, whatever is in it.
//
// # Concurrency
//
// Everything is safe for concurrent use, but for a Section of a Writer, which one goroutine fills; several
// may be filled at the same time.
//
// # Memory
//
// Writing takes a block of each type that is being written, about 256 KB, and an entry for each block.
// Reading takes a block, too. A type whose objects did not come in the order of their keys is read whole:
// those of custom resources do.
package snapshot
