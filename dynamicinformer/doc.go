// Package dynamicinformer builds informers for any Kubernetes resource, keyed by GroupVersionResource.
// Custom resources need no Go type.
//
// # Usage
//
// [New] creates a [Factory] from a dynamic client or a rest.Config. [Factory.ForResource] returns the
// informer of a type; it can be read, and handlers can be added, before it runs. [Factory.Start] starts
// all informers, [Factory.WaitForSync] waits until each is synced or cannot sync, and [Factory.Shutdown]
// stops all informers and waits for them.
//
// [Options.Defaults] are the options of every type: namespaces, selectors, version, storage.
// [Options.Resources] overrides them for single types. [Factory.Acquire] is for parts of a program that need
// a type temporarily, or with options of their own: calls with equal options share one informer, which stops
// after the release of its last handle.
//
// An [Informer] is a cache.SharedIndexInformer, so controller-runtime's sources and all other code for
// client-go's informers can use it. Objects are *unstructured.Unstructured; they are shared and must not
// be changed. Package typed reads them as Go structs.
//
// [Factory.Subscribe] follows all types that match a pattern, including types that are installed later.
// [Factory.AddListener] is for metrics, logs and alarms, [Factory.Conditions] for readiness.
//
// [Options.Persistence] stores the caches for the next process; package adapters/storage/disk implements it
// with files. A [Shard] limits each replica of a program to a part of the objects.
//
// # Memory
//
// The cache holds each object as JSON and decodes it when a caller reads it. Decoded copies remain until the
// garbage collector frees them. [Storage] selects other forms, for all types or for single ones. [Prune]
// drops fields that the program does not read, and [Keep] all but some. [MetadataOnly] is for handlers that
// need only keys or labels, and decodes nothing. [Factory.Stats] returns the sizes of caches and indexes.
//
// # Consistency
//
// Each informer is eventually consistent with the API server. The order of events of different types is
// undefined. [Informer] documents the exact contract. [Informer.Status] reports whether a cache has been
// filled and whether the informer has lost contact since, and why.
//
// A type that cannot be listed neither delays nor fails another: [Factory.WaitForSync] returns when
// every type is settled, and its error names the types that are not synced.
//
// # Concurrency
//
// A Factory and its Informers are safe for concurrent use. Callbacks (event handlers, transforms, tweaks of
// list options, listeners, subscribers) are called without locks and may call the factory, but they must not
// wait for its Shutdown. Each handler, listener and subscriber has its own queue: a slow one does not delay
// the others, and its Depth grows.
package dynamicinformer
