// Package controllerruntime implements controller-runtime's cache.Cache with the informers of
// dynamicinformer. Objects are stored as JSON, compressed while they are not read, and decoded on read.
//
// # Usage
//
// A manager needs one line:
//
//	manager, err := ctrl.NewManager(config, ctrl.Options{NewCache: controllerruntime.NewCache})
//
// All fields of cache.Options work as with the stock cache. [NewCacheFunc] adds the [Options] of this
// package. [New] returns a *[Cache]; in a manager, use manager.GetCache().(*controllerruntime.Cache). Its
// Factory has status, statistics and subscriptions. controller-runtime's registry has its metrics.
// [Cache.SetTypeSettings] changes selectors and other settings of a type while the cache runs.
//
// # Several replicas
//
// With a [Sharding], each replica caches and reconciles some of the objects, without leader election: see
// docs/sharding.md. Reads of sharded types return the objects of the replica's shards.
//
// # Differences from the stock cache
//
// docs/controller-runtime.md lists them. The forms of a type share one informer, unless their transforms
// differ. When a CRD is deleted, handlers receive a delete event for each of its objects, and reads find
// nothing. The cache watches CustomResourceDefinitions and APIServices, or polls discovery every 30 seconds
// if it is not allowed to, once an answer suggests that a type has changed (TestTrackerRunsWhenNeeded).
//
// Reading an object that does not fit its Go type returns an error that names it; other objects stay
// readable. A List that selects such an object fails. The stock cache would never sync. Objects are always
// requested as JSON, never as protobuf. The rate limit of the REST config applies only to reads of reduced
// objects, unless its RateLimiter is set. The stock cache has one limiter per type; this cache limits
// concurrent lists, and lowers that limit while the server reports overload.
//
// Each type has the consistency of dynamicinformer.Informer. There is no order between types. A List returns
// a consistent snapshot of each namespace that has a watch of its own.
//
// Everything is safe for concurrent use. Handlers, index functions, and readers with UnsafeDisableDeepCopy
// receive shared objects and must not change them. All other readers own the objects they receive. A decoded
// shared object is cached with a weak pointer for the next reader.
package controllerruntime
