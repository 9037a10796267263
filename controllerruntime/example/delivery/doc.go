// Package delivery is a sample operator on controller-runtime with crdcache as its cache. It delivers the
// Workloads of the demo platform (testdata/crds in the repository): it writes the settings of each into a
// ConfigMap, and says in its status how far it has come. To copy from it, look at
//
//   - NewManager for the options of a manager: the cache, what of each type it holds, and indexes from YAML;
//   - WorkloadReconciler for a reconciler that reads only from the cache, with a finalizer and server-side
//     apply;
//   - Routes for types that may be missing, and may come and go while the operator runs.
package delivery
