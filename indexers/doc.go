// Package indexers turns a YAML file into index functions for Kubernetes objects.
//
// A config names resources, says how their objects are kept, and, for each, indexes: where their values
// come from, as paths in the language of the package jsonpath; of what type they are and in which order;
// how they are changed; what stands for missing ones; and which objects count. docs/config.md describes
// it with examples.
//
// # Usage
//
// [Load] reads files and [Parse] what is in memory; [Config.Check] compares a config with
// CustomResourceDefinitions; package bind, below this one, gives it to informers of this library, and
// package query answers from them. [Compile] makes functions that any other informer takes:
//
//	config, err := indexers.Load("indexes.yaml")
//	resource, ok := config.Resource("certs")
//	functions := indexers.Compile(resource)
//	err = informer.AddIndexers(functions.Indexers())
//	...
//	objects, err := informer.GetIndexer().ByIndex("condition", indexers.Value("Ready", "True"))
//
// Errors are a [*ConfigError], which holds everything that is wrong at once, each with file, line,
// column, a code and a way out. [Diff] compares two configs, and package reload follows files as they
// change.
//
// # Consistency
//
// An index function gives each value of an object once, in the order of the path. It never returns
// an error and never panics, whatever the object: values that cannot be indexed, or are beyond a
// limit, are left out and counted in [Functions.Stats]. The same object always gives the same
// values, whether it is decoded or raw JSON ([Functions.KeysJSON]).
//
// The text of a value is the string itself; true or false; or a number in its shortest form, so
// that 2.50 is found as 2.5. Values with a type have one canonical form. Values of composite indexes
// are built by [Value]. Sorted indexes hold keys whose order as bytes is that of the values;
// [Index.Key], [Index.Prefix] and [Index.Parts] translate, for every index.
//
// # Concurrency
//
// A Config never changes after it was parsed. Configs, Functions and the functions themselves may be
// used from any number of goroutines.
package indexers
