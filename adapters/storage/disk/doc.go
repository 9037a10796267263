// Package disk persists the content of a dynamicinformer.Factory's informers in a folder, so that the next
// process resumes from it instead of listing everything.
//
// # Usage
//
//	store := disk.New("/var/lib/my-operator/cache", disk.Options{})
//	defer store.Close(ctx)
//	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Persistence: store})
//
// Close it after Factory.Shutdown, which saves remaining changes. Only one process can use a folder at a
// time.
//
// # Consistency
//
// A stored content is loaded as it was saved, completely, or not at all, whatever happened to the process,
// the machine or the files. After damage that may be an earlier save, and otherwise the last one. Saves are
// atomic and synced; every byte has a checksum. Content that is damaged from the start is reported, and all
// objects are listed again.
//
// An unusable folder, a full or read-only disk, or a second process on the folder is reported as Err in
// Informer.Persistence. The informers retry after a growing pause, and work as if there were no persistence.
//
// A Store is safe for concurrent use. Only the owner can access the files (0600, in folders with 0700). They
// are not encrypted, unless Options.Keys has a key.
package disk
