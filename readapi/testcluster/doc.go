// Package testcluster is a Kubernetes cluster in memory, for the tests of controllers, operators and whatever
// else speaks the Kubernetes API. It starts in a few milliseconds, needs no binary and no port, and is
// reached by any client over client-go's real transport.
//
// # Usage
//
//	cluster, err := testcluster.New(t.Context(), testcluster.Options{
//		Paths:  []string{"../config/crd", "testdata/objects.yaml"},
//		Scheme: scheme, // of typed objects; nil where there are none
//	})
//	// or one of client-go's clients
//	client, err := client.New(cluster.Config(), client.Options{Scheme: scheme})
//	conflict := faults.Match{Verbs: []string{"update"}}
//	cluster.Faults().Add(faults.Fault{Match: conflict, Times: 1, Effect: faults.Fail()})
//
// # What it does
//
// It has the built-in types of Kubernetes 1.37 and those of CustomResourceDefinitions, which may come and go
// while it runs; the namespaces default, kube-system, kube-public and kube-node-lease; and discovery, get,
// list and watch as package readapi describes them.
//
// Writes follow the rules of a kube-apiserver, and a test compares thousands of them, good ones and bad ones,
// with a real one: create with generateName; update with conflicts on a stale resourceVersion; JSON patches
// and merge patches; the status subresource; generations that count changes of anything but metadata and
// status; uid, creationTimestamp; finalizers with deletionTimestamp; delete with preconditions;
// deletecollection; dryRun; fieldValidation, of custom resources; metadata that is not valid; and watches
// that tell of all of it in order. Custom resources lose the fields that their schema does not have, and get
// its defaults.
//
// ConfigMaps and Secrets that are immutable keep their contents. Built-in types whose Go type is in
// Options.Scheme are decoded into it, and an object that does not fit is refused; others are taken as they
// are.
//
// An object can only be created in a namespace that is there. Who deletes a namespace, deletes what is in it;
// it goes when nothing is left, as in a cluster whose controllers run. So does a CustomResourceDefinition,
// with its type.
//
// Strategic merge patches are for built-in types whose Go type is in Options.Scheme; for custom resources a
// kube-apiserver refuses them, too.
//
// # What it does not do
//
// Nothing of the following happens. What is refused says so, and where to go instead: to envtest, or to any
// real cluster.
//
//   - Server-side apply is refused. Nobody keeps track of who wrote which field: objects have the
//     managedFields that clients give them, mostly none.
//   - Objects are not validated against the schema of their type, nor by CEL rules, nor by the code for
//     built-in types, but for the immutable ones; nor are these given defaults or rid of unknown fields.
//   - Nothing is admitted or mutated. Webhook configurations and admission policies are refused.
//   - Subresources other than status are refused: scale, eviction, binding, log, exec, tokens.
//   - No controller runs, but for what is said of namespaces and definitions: there are no pods for a
//     Deployment, no garbage collection. Deletion with propagation Foreground or Orphan leaves the object
//     with the finalizer of that name, which a garbage collector would remove; Background leaves dependents
//     as they are.
//   - Pods are deleted at once, without a grace period.
//   - An object is stored in the version in which it was written. Others see it without the fields that they
//     do not have; where a conversion webhook would be asked, reading fails.
//   - events of the groups "" and events.k8s.io are two types, not two views of one.
//   - Nobody is asked who they are.
//
// # Concurrency
//
// A Cluster is safe for concurrent use. It has no goroutines but those of requests, and needs no end: cancel
// the contexts of your clients, as on any server.
package testcluster
