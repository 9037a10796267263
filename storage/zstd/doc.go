// Package zstd compresses the objects of a cache with a dictionary per type.
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
// Objects of one type are similar, but each is too small to compress well. Therefore a dictionary is trained
// with the first objects of a type. A new one is trained when it no longer fits the objects. Objects refer
// to their dictionary, which is freed after the last of them. An object that does not become smaller is
// stored uncompressed.
//
// # Concurrency
//
// Everything is safe for concurrent use. One Trainer serves any number of types and factories.
//
// # Memory
//
// A dictionary needs its size (Options.DictionarySize). All objects of a type share encoders and decoders,
// which are freed when unused.
package zstd
