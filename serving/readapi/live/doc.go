// Package live serves the read side of the Kubernetes API from the informers of a factory, with the resource
// versions of the cluster. A client can switch between the API server and such servers in the middle of a
// watch.
//
// # Usage
//
//	server, err := live.New(live.Options{Factory: factory, Types: tracker.Types(), Config: config})
//	err = server.AddType(informer, indexes...) // for each type
//	http.Serve(listener, server)
//
// [Server.Bind] serves the types that a config or patterns select, as types are installed and removed.
//
// # Requests
//
// Get, list, watch and watch-list of cached types are served by package readapi, as objects, as
// PartialObjectMetadata and, for custom resources, as Table. The indexes of a type are fields for field
// selectors, such as "issuer=letsencrypt". Paths under /query accept the language of package query, see
// [QueryPath].
//
// All other reads are forwarded to the API server: other types and versions, subresources, tables of built-in
// types, discovery, OpenAPI, and media types other than JSON. The response header Crdcache-Served is "cache"
// or "cluster". Crdcache-Pruned is "true" if the cached objects lack fields. Writes, and reads with side
// effects (exec, attach, portforward, proxy), are refused.
//
// The server reads with the credentials of its config, and does not authenticate its clients. Serve only
// clients that are allowed to read everything that the config can read. If the API server forbids the
// requests of an informer, its type is no longer served from the cache.
//
// # Consistency
//
// A list or watch-list without resourceVersion is a consistent read. The server asks the API server for the
// current resource version of the type, and waits until the cache has reached it. After
// [Options.FreshTimeout] the answer is 504, like that of a lagging kube-apiserver. A get without
// resourceVersion is forwarded, because a get costs the API server less than this check. With
// resourceVersion=0, or with the request header "Cache-Control: max-stale", the answer is the state of the
// cache.
//
// A watch can continue from any version in the history ([Options.History]). For an older version, the server
// asks the API server whether an object of the type has changed before the history began. If not, the watch
// continues, as does a list with its continue token. Otherwise the answer is 410. A running watch gets 410
// when the informer has listed again.
//
// # Concurrency
//
// A Server is safe for concurrent use. It has no goroutines beside the requests'.
//
// # Memory
//
// Lists, snapshots and the history share the objects of the informers. A sorted list of the objects of a type
// is kept in memory while it is being read.
package live
