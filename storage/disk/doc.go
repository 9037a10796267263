// Package disk keeps what the informers of a dynamicinformer.Factory hold in the files of a folder, so that
// the next process goes on from there in place of listing everything again.
//
// # Usage
//
//	kept := disk.New("/var/lib/my-operator/cache", disk.Options{})
//	defer kept.Close()
//	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Persistence: kept})
//
// Close it after Factory.Shutdown, which saves what is left to save. One process at a time uses a folder.
//
// # Consistency
//
// What is loaded of a view is one content that was saved, whole, or nothing: whatever happened to the
// process, the machine or the files. Saves are atomic and synced; every block has a checksum. Files that turn
// out to be damaged are removed, and everything is listed once more.
//
// # Failures
//
// A folder that cannot be used, a disk that is full or read-only, or a second process on the folder show as
// Err in Informer.Persistence, and are tried again after a pause that grows. The informers go on as if
// nothing were kept.
//
// # Concurrency
//
// A Store is safe for concurrent use.
//
// # Who can read it
//
// Files are for their owner alone (0600, in folders of 0700). They are not encrypted, unless Options.Keys has
// a key: who can read them reads the objects.
package disk
