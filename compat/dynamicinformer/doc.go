// Package dynamicinformer has the exported names and signatures of k8s.io/client-go/dynamic/dynamicinformer,
// on top of this project's informers. A program changes one import path and nothing else:
//
//	import "github.com/crdcache/crdcache/compat/dynamicinformer"
//
// New code is better off with github.com/crdcache/crdcache/dynamicinformer, which has contexts, errors, a
// status for every type and follows types as they come and go. It also costs a program about a quarter of the
// packages: this one needs k8s.io/client-go/informers for the types in its signatures.
//
// # Usage
//
// The factory works as client-go's does, with any dynamic.Interface: a real client, an instrumented one, or
// the one of k8s.io/client-go/dynamic/fake. An informer can be asked for more than client-go's: it is a
// *dynamicinformer.Informer of this project underneath, whose Status tells why it is not synced.
//
//	if i, ok := factory.ForResource(gvr).(*crdcache.Informer); ok {
//		log.Print(i.Status())
//	}
//
// # What differs
//
// Where client-go's signatures leave no room for an error, what cannot work gives an informer that never
// syncs and hands the error to its watch error handler, again and again with a growing pause: a nil client, a
// GroupVersionResource without version or resource, a nil index function. client-go panics, or asks the
// server, which refuses.
//
// An index by namespace is always there, because the lister needs it. NewFilteredDynamicInformer takes
// cache.MetaNamespaceIndexFunc under cache.NamespaceIndex, and no other function: that is an error as above.
// AddIndexers accepts it once where the constructor was not given it, as client-go's does.
//
// A negative resync period means none.
//
// Objects are kept decoded, as client-go keeps them: reading costs nothing, and what a fake client returns is
// what the cache holds. The memory is saved by this project's own package, which packs them.
//
// # Consistency
//
// Each informer is eventually consistent with the API server, on its own; what handlers see is what
// client-go's informers show, but that an object which was deleted and created again while the informer was
// away is delivered as a deletion and an addition, not as one update.
//
// # Concurrency
//
// Everything is safe for concurrent use. No callback is called with a lock held.
package dynamicinformer
