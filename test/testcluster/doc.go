// Package testcluster is a Kubernetes cluster in memory, for tests of controllers and of other clients of the
// Kubernetes API. It starts in a few milliseconds and needs no binary and no port. Clients reach it over
// client-go's real transport.
//
// # Usage
//
//	cluster, err := testcluster.New(t.Context(), testcluster.Options{
//		Paths:  []string{"../config/crd", "testdata/objects.yaml"},
//		Scheme: scheme, // for typed objects; optional
//	})
//	// or a client of client-go
//	client, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
//	conflict := testcluster.Match{Verbs: []string{"update"}}
//	cluster.Faults().Add(testcluster.Fault{Match: conflict, Times: 1, Effect: testcluster.Fail()})
//
// Faults can be added and removed at any time. An Injector also wraps other handlers, such as a proxy.
//
// # Supported features
//
// A cluster has the built-in types of Kubernetes 1.37 and the types of CustomResourceDefinitions, which can
// be created and deleted at any time; the namespaces default, kube-system, kube-public and kube-node-lease;
// and discovery, get, list and watch as described in package readapi.
//
// Writes follow the rules of a kube-apiserver. A test compares thousands of valid and invalid writes with a
// real one: create with generateName; update with conflicts; JSON patches and merge patches; the status
// subresource; generations; uid and creationTimestamp; finalizers and deletionTimestamp; delete with
// preconditions; deletecollection; dryRun; fieldValidation of custom resources; validation of metadata; and
// the order of watch events. Unknown fields of custom resources are dropped and their defaults are set.
//
// Immutable ConfigMaps and Secrets keep their content. Objects of built-in types in Options.Scheme are
// decoded into their Go type and refused if that fails. Strategic merge patches need the Go type, too. A
// kube-apiserver refuses them for custom resources.
//
// Objects can be created only in existing namespaces. Deleting a namespace deletes its objects first, and
// deleting a CustomResourceDefinition those of its type.
//
// # Unsupported features
//
// For the following, use envtest or a real cluster. Refused requests say so.
//
//   - Server-side apply is refused. managedFields are stored as clients send them.
//   - Objects are not validated against schemas or CEL rules. Built-in types are not validated or defaulted.
//   - There is no admission. Webhook configurations and admission policies are refused.
//   - Subresources other than status are refused: scale, eviction, binding, log, exec, tokens.
//   - No controllers run, except for the deletion of namespaces and definitions: no pods for a Deployment, no
//     garbage collection. Deletion with propagation Foreground or Orphan leaves the object with the finalizer
//     of that name. Background does not delete dependents.
//   - Pods are deleted immediately, without a grace period.
//   - Objects are stored in the version in which they are written. Other versions are read without unknown
//     fields. If a conversion webhook is needed, reading fails.
//   - events of the groups "" and events.k8s.io are two separate types.
//   - There is no authentication and authorization.
//
// # Concurrency
//
// A Cluster is safe for concurrent use. It has no goroutines except for requests, and needs no shutdown.
// Cancel the contexts of its clients.
package testcluster
