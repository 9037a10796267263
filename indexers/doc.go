// Package indexers turns a YAML file into index functions for Kubernetes objects.
//
// A config names resources and, for each, indexes: where their values come from, as paths in the
// language of the package jsonpath; how values are changed; what stands for missing ones; and which
// objects count. docs/config.md describes it with examples.
//
// # Usage
//
// [Load] reads files and [Parse] what is in memory; [Config.Check] compares a config with
// CustomResourceDefinitions; [Compile] makes functions that any informer takes:
//
//	config, err := indexers.Load("indexes.yaml")
//	resource, ok := config.Resource("certs")
//	functions := indexers.Compile(resource)
//	err = informer.AddIndexers(functions.Indexers())
//	...
//	objects, err := informer.GetIndexer().ByIndex("condition", indexers.Value("Ready", "True"))
//
// Errors are a [*ConfigError], which holds everything that is wrong at once, each with file, line,
// column, a code and a way out.
//
// # Consistency
//
// An index function gives each value of an object once, in the order of the path. It never returns
// an error and never panics, whatever the object: values that cannot be indexed, or are beyond a
// limit, are left out and counted in [Functions.Stats]. The same object always gives the same
// values.
//
// The text of a value is the string itself; true or false; or a number in its shortest form, so
// that 2.50 is found as 2.5. Values of composite indexes are built by [Value].
//
// # Concurrency
//
// A Config never changes after it was parsed. Configs, Functions and the functions themselves may be
// used from any number of goroutines.
package indexers
