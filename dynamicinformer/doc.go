// Package dynamicinformer builds informers for any Kubernetes resource, keyed by GroupVersionResource,
// without Go types: above all for custom resources.
//
// # Usage
//
// A [Factory] is made from a dynamic client, or from a rest.Config. [Factory.ForResource] gives the
// informer of a type; it can be read and can take event handlers before it runs. [Factory.Start] runs
// what was asked for so far, [Factory.WaitForSync] waits until it is known of each type whether it can
// be read, and [Factory.Shutdown] ends everything and waits for it.
//
// [Options.Defaults] say how types are followed (in which namespaces, by which selectors, in which version, how
// objects are kept), and [Options.Resources] what is different for single ones. [Factory.Acquire] is for parts of a
// program that need a type for a while, perhaps in a view of their own: equal views share one informer, which stops
// when the last of its handles has been released.
//
// An [Informer] is a cache.SharedIndexInformer, so that controller-runtime sources and all other code
// written for client-go's informers can use it. Objects are *unstructured.Unstructured; they are shared
// and must not be changed.
//
// To follow all types of a pattern, also those that are installed later, use [Factory.Subscribe]. [As] reads
// an informer's objects as a struct of one's own. [Listener] is for metrics, logs and alarms, and
// [Factory.Conditions] for readiness.
//
// [Options.Persistence] keeps caches for the next process, which package storage/disk does in a folder. A [Shard] has each
// replica of a program follow a part of the objects.
//
// # Memory
//
// Objects are kept as JSON and decoded when somebody reads them; decoded copies live until the garbage collector
// takes them. [Storage] has other ways, also for single types; [Prune] leaves out what nobody reads; [MetadataOnly]
// is for handlers that need no more than keys or labels, for which nothing is decoded. [Factory.Stats] tells what
// caches and indexes occupy.
//
// # Consistency
//
// Each informer is eventually consistent with the API server, on its own: nothing is promised about the
// order of events of two types. The contract is written down at [Informer]. [Informer.Status] tells whether
// a cache has been filled, whether contact has been lost since, and why.
//
// One type that cannot be listed never delays or fails another: [Factory.WaitForSync] returns when every
// type is settled, and its error names those that are not synced.
//
// # Concurrency
//
// A Factory and its Informers are safe for concurrent use. Callbacks (event handlers, transforms, the
// tweak of list options, listeners, subscribers) are never called with a lock held, and may call back into the
// factory, but must not wait for its Shutdown. Handlers, listeners and subscribers have queues of their own: a slow
// one delays nobody, and its Depth shows.
package dynamicinformer
