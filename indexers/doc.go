// Package indexers compiles a YAML config to index functions for Kubernetes objects.
//
// A config selects resources, configures how their objects are stored, and declares indexes for each: the
// paths of the values in the language of package jsonpath, their type and order, transforms, the handling of
// missing values, and a condition for the objects. docs/config.md describes it with examples.
//
// # Usage
//
// [Load] reads files and [Parse] reads memory; [Config.Check] compares a config with
// CustomResourceDefinitions. Subpackage bind applies a config to crdcache's informers, and subpackage query
// answers queries. [Compile] makes functions for any other informer:
//
//	config, err := indexers.Load("indexes.yaml")
//	resource, ok := Resource("certs")
//	functions := indexers.Compile(resource)
//	err = informer.AddIndexers(functions.Indexers())
//	...
//	objects, err := informer.GetIndexer().ByIndex("condition", indexers.Value("Ready", "True"))
//
// Errors are a [*ConfigError], which lists all errors, each with file, line, column, code and remedy. [Diff]
// compares two configs, and subpackage reload follows files as they change.
//
// # Consistency
//
// An index function returns each value of an object once, in the order of the path. It never returns an error
// or panics: values that cannot be indexed, or that exceed a limit, are left out and counted in
// [Functions.Stats]. The same object always has the same values, decoded or as JSON ([Functions.KeysJSON]).
//
// A value is a string itself; true or false; or a number in its shortest form, so that 2.50 is found as 2.5.
// Values with a type have one canonical form. [Value] builds the values of composite indexes. Sorted indexes
// have keys that sort like the values as bytes; [Index.Key], [Index.Prefix] and [Index.Parts] convert between
// values and keys of every index.
//
// # Concurrency
//
// Configs, Functions and index functions are safe for concurrent use. A Config is immutable.
package indexers
