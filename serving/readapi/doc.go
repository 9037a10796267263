// Package readapi serves the read side of the Kubernetes API from memory: discovery, get, list and watch of
// any type, as kubectl, client-go and informers expect it from a kube-apiserver.
//
// # Usage
//
// Implement a [Backend], which returns types, objects and their changes, and serve it:
//
//	http.ListenAndServe("localhost:8001", readapi.NewHandler(backend, readapi.HandlerOptions{}))
//
// Then "kubectl --server http://localhost:8001 get widgets" works. Within a process no socket is needed:
// [Config] returns a rest.Config with a transport that calls the handler.
//
// Package live has a backend for a cache of a cluster, with the resource versions of the cluster. Package
// testcluster has a backend in memory for tests, which clients can write to.
//
// # Supported requests
//
//   - /version, /healthz, /readyz, /livez; aggregated and legacy discovery; OpenAPI v3.
//   - get; list with limit, continue, resourceVersion, resourceVersionMatch; watch with bookmarks and
//     timeoutSeconds; watch-list.
//   - Label selectors; field selectors on name, namespace and the selectable fields of the type; shard
//     selectors by the hash of UID or namespace, as with the feature ShardedListAndWatch.
//   - Objects, Table with the printer columns of the type, and PartialObjectMetadata; in JSON and YAML.
//
// Errors are Status objects with the code, the reason and the message of a kube-apiserver. Tests compare the
// answers to several thousand requests with those of a kube-apiserver, byte for byte except for times.
//
// Not supported: authentication and authorization, selectors of more than 64 KB, protobuf and CBOR,
// compressed answers, OpenAPI v2, the scale subresource, the deprecated /watch/ paths, the list of paths at
// /, and the built-in columns of a kube-apiserver. Writes are refused unless the backend is a [Writer].
//
// # Consistency
//
// A list is the state at one resource version, also over several pages. A watch continues any list without
// loss or repetition. If the backend does not remember the changes since a resource version, the answer is
// 410 Expired, and the client has to list again.
//
// # Concurrency
//
// A handler is safe for concurrent use. A backend never waits for a client: a list is written from a
// snapshot, and a watch that falls too far behind expires. An answer to a stalled client is cut after
// HandlerOptions.WriteTimeout. A watch ends at most a few seconds after its timeoutSeconds. Each event is
// encoded once for all watches of a type.
package readapi
