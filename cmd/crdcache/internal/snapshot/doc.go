// Package snapshot stores the state of a cluster in one file: objects, their types, and the server's table
// rows, compressed and with checksums.
//
// # Usage
//
// A Writer writes a file, type by type. The path does not change before Commit:
//
//	w, err := snapshot.Create("cluster.snapshot", snapshot.Origin{Tool: "my-operator"})
//	defer w.Abort() // without effect after Commit
//	types := w.BeginType(snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos",
//		Kind: "Gizmo", Namespaced: true})
//	err = types.AddCache(informer.Snapshot())
//	err = w.Commit()
//
// A File reads single types or objects:
//
//	f, err := snapshot.Open("cluster.snapshot")
//	defer f.Close()
//	for record, err := range f.Objects(gizmos).All {
//		fmt.Println(record.Key)
//	}
//
// 'crdcache snapshot save' writes such files, and every command with --from reads them.
//
// # Consistency
//
// The objects of a type are consistent at one resource version, which the file contains. Types are read one
// after another, so their times may differ by seconds. A type that could not be read is stored with the
// reason, and is not confused with an empty one.
//
// # Damage
// Checksums cover every byte. Reading a file that is truncated, modified or not a snapshot returns a
// *FormatError with the position. A newer file with unsupported features causes the same error. The size of
// the file limits the cost of reading, whatever its content.
//
// # Concurrency
// Everything is safe for concurrent use, except a TypeWriter, which one goroutine fills. Several goroutines
// can fill one TypeWriter each at the same time.
//
// # Memory
//
// A Writer buffers one block for each open TypeWriter, about 256 KB, and stores an index entry for each
// block. Reading needs one block, too. If the objects of a type were not added in the order of their keys,
// the type is read completely. Lists of custom resources are in this order.
package snapshot
