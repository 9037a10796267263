// Package readapi serves the read side of the Kubernetes API from memory: discovery, get, list and watch
// of any types, as kubectl, client-go and informers expect it from a kube-apiserver.
//
// # Usage
//
//	storage := readapi.NewStorage(readapi.StorageOptions{})
//	_, err := storage.Apply(crd)    // *unstructured.Unstructured; defines the type
//	_, err = storage.Apply(widget)  // and an object of it
//	http.ListenAndServe("localhost:8001", readapi.NewHandler(storage, readapi.HandlerOptions{}))
//
// Then "kubectl --server http://localhost:8001 get widgets" works. Within one process, no socket is needed:
// [Config] returns a rest.Config whose transport calls the handler.
//
// Types come from CustomResourceDefinitions, which are objects like any other, or from [Storage.SetType].
//
// A handler stands on a [Backend], of which a Storage is one: [NewBackendHandler] serves others, such as a
// cache of a real cluster with the cluster's own resource versions.
//
// # What is served
//
// /version, /healthz, /readyz, /livez; aggregated and legacy discovery; OpenAPI v3; and for each type get,
// list (limit, continue, resourceVersion and resourceVersionMatch, label selectors, field selectors on the
// name, the namespace and the selectable fields of the type), watch (bookmarks, timeoutSeconds) and
// watch-list, as objects, as Table with the printer columns of the type, and as PartialObjectMetadata. Errors
// are Status objects with the code, the reason and the message of a kube-apiserver. Nobody is asked who they
// are: serve it where every reader may read everything.
//
// Nothing can be written, unless HandlerOptions.Writes is set. Then clients create, update, patch (JSON
// patches and merge patches) and delete the objects of a Storage by the rules of a kube-apiserver, which is
// what the tests of controllers need: conflicts, preconditions, the status subresource, finalizers and
// deletionTimestamp, generateName, generations, collections, dryRun, validation of metadata, and watches that
// tell of all of it; of custom resources unknown fields are dropped and defaults filled in. Server-side apply
// is refused; nothing is validated against a schema, admitted or collected, and built-in types get no
// defaults. Package testcluster makes a cluster of all this, and says more. Where that is not enough, use a
// real kube-apiserver such as envtest's.
//
// Not served: selectors of more than 64 KB, protobuf and CBOR, compressed answers, OpenAPI v2, the scale
// subresource, the deprecated /watch/ paths, the list of all paths at /, and the columns that a
// kube-apiserver has in its code for built-in types. What a kube-apiserver answers to other methods than GET
// with discovery, is refused. Tests compare the answers to some thousand requests with those of a
// kube-apiserver, byte for byte but for what depends on the time: discovery, get, list, watch and errors,
// with parameters in many combinations. Health checks, and a watch as PartialObjectMetadataList, are not
// among them.
//
// A shardSelector selects by the hash of UID or namespace, as on kube-apiservers with the feature
// ShardedListAndWatch, in lists, of which metadata.shardInfo says so whatever the type is, and watches.
//
// # Consistency
//
// Every change gets the next resource version of the whole storage. A list is one moment's state, also over
// several pages; a watch continues any list without loss or repetition. Each type remembers its last changes
// (StorageOptions.History); who asks for more gets 410 Expired and has to list again.
//
// # Concurrency
//
// Storage and handler are safe for concurrent use. Reading never waits for a client: a list writes from a
// snapshot, and a watch that cannot keep up expires. A client that stalls is cut off after
// HandlerOptions.WriteTimeout, and no watch outlives its timeoutSeconds by more than a few seconds.
//
// What watches of a type are told is encoded once, for the first of them. A page of a list costs what is on
// it, in any state that is remembered. Nothing goes on for a client that has left.
//
// # Memory
//
// An object is kept as its JSON and its labels, without decoded form. Snapshots and history share it.
package readapi
