// Package s2 compresses the objects of a cache, with a dictionary for each type of objects, in little time:
// it is what most programs that compress want. Package storage/zstd takes four to ten times as long; what it
// makes of small objects is no smaller, and of objects of 10 KB by a third.
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
// Objects of one type are much alike, and too small to compress well each for itself. So a dictionary is made
// of the first objects of a type, and another when it no longer fits what comes. Objects refer to the
// dictionary that they need, which lives as long as they do. An object that does not become smaller is kept
// as it is. S2 is a form of Snappy; its blocks hold no checksums, because they never leave the memory of the
// process.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Trainer serves any number of types and factories.
//
// # Memory
//
// A dictionary takes its size (Options.DictionarySize) and 32 KiB once. Compressing takes 64 KiB of the stack
// of the goroutine that does it.
package s2
