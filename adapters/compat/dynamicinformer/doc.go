// Package dynamicinformer has the exported names and signatures of k8s.io/client-go/dynamic/dynamicinformer,
// on top of this project's informers. A program changes one import path and nothing else:
//
//	import "github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
//
// One more function, [Packed], saves memory:
//
//	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicinformer.Packed(client), resync)
//
// The factory accepts any dynamic.Interface, also k8s.io/client-go/dynamic/fake. Each informer is a
// *dynamicinformer.Informer of this project, whose Status reports why it is not synced.
//
// # Differences
//
// Client-go's signatures leave no room for some errors: a nil client, a GroupVersionResource without version
// or resource, a nil index function. Such an informer never syncs and passes the error to its watch error
// handler. An index by namespace always exists; it must be cache.MetaNamespaceIndexFunc. A negative resync
// period means none. An object that was deleted and created again while the informer was disconnected is
// delivered as a deletion and an addition.
package dynamicinformer
