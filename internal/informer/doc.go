// Package informer keeps one collection of Kubernetes objects in memory, indexed, and tells event handlers
// what changes in it. Its Informer is a cache.SharedIndexInformer on client-go's Reflector, with a store and
// a delivery of its own.
//
// # Usage
//
//	inf := informer.New(lw, informer.Options{ExampleObject: &unstructured.Unstructured{}})
//	handle, err := inf.AddEventHandler(handler)
//	go inf.RunWithContext(ctx)
//	err = inf.WaitForSync(ctx)
//	certificates, err := inf.GetIndexer().ByIndex(cache.NamespaceIndex, "default")
//
// An owner that outlives what it lists (a CRD that is deleted and created again) uses RunParts, Forget and
// Stop in place of RunWithContext: handlers and indexers stay from one generation to the next.
//
// # How an event flows
//
// The Reflector writes to the running generation. That transforms the object, packs it where its Form says
// so, computes its key and index values without any lock, and then, under the informer's lock, writes it to
// the Store once and appends one notification to the queue of each handler. There is no queue between the
// Reflector and the store, so no second copy of the world exists while a list arrives; a list is compared
// with the store and swapped in at once. Each handler has one goroutine that works off its queue, so that a
// slow one delays nobody. Queues carry what the store keeps: a handler's goroutine decodes it when its turn
// comes.
//
// # Consistency
//
// The contract is in the comment on Informer of package dynamicinformer.
//
// # Concurrency
//
// Everything is safe for concurrent use. Handlers, transforms, key functions and index functions never run
// under a lock of this package, so each may call the informer.
package informer
