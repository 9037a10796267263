// Package informer caches the objects of a ListerWatcher in memory, with indexes, and notifies event handlers
// of changes. Informer is a cache.SharedIndexInformer with its own store and event delivery.
//
// # Terms
//
//   - An incarnation is one run of an informer. An owner that outlives a type (its CRD is deleted and
//     recreated) calls RunPartitions, Forget and Stop in place of RunWithContext. Handlers and indexers stay.
//   - A partition has the objects of one reflector of an incarnation: everything, a namespace, or the hash
//     ranges of a Selection.
//   - An object leaves the shard if it leaves the partitions without being deleted.
//   - Restored objects were persisted by an earlier process. They are unconfirmed until the server has
//     confirmed that they are current.
//
// # How an event flows
//
// Each reflector writes to its partition. The partition transforms and packs the object, and computes its key
// and index values, without a lock. Under the informer's lock it writes them to the Store and appends a
// notification to the queue of each handler. There is no queue between the reflector and the store, so there
// is no second copy of a list: it is compared with the store and swapped in atomically. Each handler has a
// goroutine for its queue, so that a slow one delays no other. It decodes the stored objects in the queue.
package informer
