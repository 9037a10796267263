// Package live serves the read side of the Kubernetes API from the informers of a factory, with the resource
// versions of the cluster: a client may go from the API server to such a server and back, or to another one,
// in the middle of a watch.
//
// # Usage
//
//	server, err := live.New(live.Options{Factory: factory, Types: tracker.Types(), Config: config})
//	err = server.Keep(informer, indexes...) // for each type that is to be served
//	http.Serve(listener, server)
//
// A [Keeper] keeps what names and patterns stand for, as types come and go.
//
// # What is served
//
// Get, list, watch and watch-list of the types that are kept, as objects, as PartialObjectMetadata and, for
// custom resources, as Table, by readapi's handler and from the JSON that the informers keep. The indexes of
// a type are field selectors: "issuer=letsencrypt" beside "metadata.name=a". /query takes the language of
// package query; see [Server.Query].
//
// All other reading goes to the API server: other types and versions, subresources, tables of built-in types,
// whose columns are in its code, discovery, OpenAPI, and what it should come to be asked for in other forms
// than JSON. So clients find the cluster as it is. The header Crdcache-Served says who has answered, "cache"
// or "cluster", and Crdcache-Pruned that parts of the objects have been left out. Writing, and what is as
// good as that (exec, attach, portforward, proxy), is refused.
//
// The server reads with the rights of its config, and asks nobody who they are: serve it where every reader
// may do what the config may. What the API server refuses the informers because of rights is not served from
// the cache any longer.
//
// # Consistency
//
// A list without resourceVersion is as recent as one of the API server: it is asked for the present version
// of the type, and the answer waits until the cache has got there, for [Options.FreshTimeout] at most; then
// it is 504, as a kube-apiserver's that lags. So is a watch-list without resourceVersion. A get without one
// is passed on, which costs the API server less. With resourceVersion=0, and with the request header
// "Cache-Control: max-stale", the answer is what the cache has.
//
// A watch goes on from any version that is not older than the history that is kept ([Options.History]). For
// an older version, such as that of a client of an earlier process, the API server is asked whether an object
// of the type has changed before the history began. If none has, the watch continues, and so does a list by
// its continue token. Otherwise the answer is 410. A running watch gets 410 when the informer has listed
// again.
//
// # Concurrency
//
// A Server is safe for concurrent use. Nothing runs but the requests of its clients, and for those that ask
// for the present state a check that ends with FreshTimeout.
//
// # Memory
//
// There is no second copy of an object: lists, snapshots and the history refer to what the informers keep. A
// sorted list of the objects of a type is kept while somebody reads it.
package live
