// Package s2 compresses the objects of a cache with a dictionary per type.
//
// # Usage
//
//	options := dynamicinformer.Options{
//		Config: config,
//		Defaults: dynamicinformer.ResourceOptions{
//			Storage: dynamicinformer.Storage{
//				Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(),
//			},
//		},
//	}
//
// The first objects of a type are the dictionary, because each object is too small to compress well. A new
// dictionary is created when the old one no longer fits. Objects refer to theirs, and those that do not
// become smaller are stored uncompressed. Blocks have no checksums: they never leave the process.
//
// Everything is safe for concurrent use. One Trainer serves any number of types and factories. A dictionary
// needs 96 KiB; compressing needs 64 KiB of stack.
package s2
