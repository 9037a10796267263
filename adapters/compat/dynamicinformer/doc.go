// Package dynamicinformer has the exported names and signatures of k8s.io/client-go/dynamic/dynamicinformer,
// on top of this project's informers. A program changes one import path and nothing else:
//
//	import "github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
//
// One more function, [Packed], saves memory:
//
//	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicinformer.Packed(client), resync)
//
// New code should use github.com/crdcache/crdcache/dynamicinformer. It has contexts, errors, a status for
// every type, and it adapts when types are created and deleted. It also imports only a quarter of the
// packages: this package needs k8s.io/client-go/informers for the types in its signatures.
//
// # Usage
//
// The factory works like client-go's, with any dynamic.Interface: a real client, an instrumented one, or
// k8s.io/client-go/dynamic/fake. Each informer is a *dynamicinformer.Informer of this project. Its Status
// reports why it is not synced:
//
//	if i, ok := factory.ForResource(gvr).(*crdcache.Informer); ok {
//		log.Print(i.Status())
//	}
//
// # Differences
//
// Client-go's signatures leave no room for some errors: a nil client, a GroupVersionResource without version
// or resource, a nil index function. Here such an informer never syncs and passes the error to its watch
// error handler, repeatedly with a growing pause. client-go panics, or sends requests that the server
// rejects.
//
// An index by namespace always exists, because the lister needs it. NewFilteredDynamicInformer accepts only
// cache.MetaNamespaceIndexFunc under cache.NamespaceIndex; another function is an error as above. As in
// client-go, AddIndexers accepts the index once if the constructor did not receive it.
//
// A negative resync period means none.
//
// Without [Packed], objects are stored decoded, as in client-go: reads cost nothing, and the cache holds the
// objects that a fake client returns. With it, two reads of an object may return different copies.
//
// # Consistency
//
// Each informer is eventually consistent with the API server. Handlers receive the same events as from
// client-go's informers, with one exception. An object that was deleted and created again while the informer
// was disconnected is delivered as a deletion and an addition, not as one update.
//
// # Concurrency
//
// All functions and methods are safe for concurrent use. Callbacks are called without locks.
package dynamicinformer
