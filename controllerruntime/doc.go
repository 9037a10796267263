// Package controllerruntime puts the informers of dynamicinformer under controller-runtime: a cache.Cache
// that keeps objects as JSON, compressed while nobody reads them, and decodes them when they are read.
//
// # Usage
//
// One line in a manager is all it takes:
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{NewCache: controllerruntime.NewCache})
//
// All of cache.Options counts as with the stock cache. [NewCacheFunc] adds [Options] of this package: indexes
// by configuration, how objects are kept, what to leave out of them, a factory that is shared with others.
// [New] returns a *[Cache], whose Factory has status, statistics and subscriptions; in a manager, that is
// manager.GetCache().(*controllerruntime.Cache). Metrics are registered in controller-runtime's registry.
// [NewInformer] is for programs that keep the stock cache.
//
// # More replicas than one
//
// A [Sharding] has each replica cache and reconcile some of the objects, and no leader is elected: see
// docs/sharding.md. Reads of sharded types find what is in the replica's shards.
//
// # What is different
//
// Typed, unstructured and metadata forms of a type share one informer, and one watch, unless a transform
// other than cache.TransformStripManagedFields makes different things of them. Where nobody reads whole
// objects, only metadata is asked for and kept. Handlers of sources that queue keys, as those of Builder.For
// without predicates do, have nothing decoded.
//
// A type whose CRD goes is told as the deletion of its objects, and is followed again when it comes back.
// Reading it meanwhile finds nothing, rather than waiting. For that the cache watches
// CustomResourceDefinitions and APIServices, or, where it may not, asks discovery every half minute. Types
// that the RESTMapper has found are followed without waiting for any of that.
//
// An object that does not fit the Go type that it is read as is an error that names it, and hides no others;
// a List that selects it fails. The stock cache never syncs then. Objects are always asked for as JSON, never
// as protobuf. The rate limit of the REST config does not count, unless its RateLimiter is set: the stock
// cache has one for each type, this one a limit on lists at once, which shrinks while the server says that it
// is overloaded.
//
// # Consistency
//
// It is that of dynamicinformer.Informer for each type, and nothing is promised about the order between
// types. A List shows one moment of each namespace that is followed by itself.
//
// # Concurrency
//
// Everything is safe for concurrent use. Objects that handlers, index functions, and readers with
// UnsafeDisableDeepCopy get are shared and must not be changed; those that other readers get are their own.
//
// # Memory
//
// Objects are kept as JSON, compressed until they are read again and again: see
// dynamicinformer.StorageAdaptive, and [Options].Storage for other ways.
//
// A decoded object is kept by a weak pointer for whoever reads it next. What a reader owns is not kept: it
// was decoded for that reader, straight into the struct, instead of being copied.
package controllerruntime
