// Package zstd compresses the objects of a cache, with a dictionary for each type of objects.
//
// # Usage
//
//	options := dynamicinformer.Options{
//		Config: config,
//		Defaults: dynamicinformer.ResourceOptions{
//			Storage: dynamicinformer.Storage{
//				Mode: dynamicinformer.StorageCompressed, Compression: zstd.New(zstd.Options{}),
//			},
//		},
//	}
//
// # How it works
//
// Objects of one type are much alike, and too small to compress well each for itself. So a dictionary is
// learnt from the first objects of a type, and another when it no longer fits what comes. Objects refer to
// the dictionary that they need, which lives as long as they do. An object that does not become smaller is
// kept as it is.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Trainer serves any number of types and factories.
//
// # Memory
//
// A dictionary takes its size (Options.DictionarySize) once. What encoders and decoders work with is shared
// by all objects of a type, and given back when it has not been used for a while.
package zstd
