// Package s2 compresses the objects of a cache with a dictionary per type.
//
// # Usage
//
//	options := dynamicinformer.Options{
//		Config: config,
//		Defaults: dynamicinformer.ResourceOptions{
//			Storage: dynamicinformer.Storage{
//				Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(s2.Options{}),
//			},
//		},
//	}
//
// # How it works
//
// Objects of one type are similar, but each is too small to compress well. Therefore the first objects of a
// type are used as a dictionary. A new dictionary is created when the old one no longer fits the objects.
// Objects refer to their dictionary, which is freed after the last of them. An object that does not become
// smaller is stored uncompressed. S2 is a variant of Snappy. Blocks have no checksums, because they never
// leave the memory of the process.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Trainer serves any number of types and factories.
//
// # Memory
//
// A dictionary needs its size (Options.DictionarySize) and 32 KiB. Compressing needs 64 KiB of stack.
package s2
