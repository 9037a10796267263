// Package delivery is a sample operator on controller-runtime with crdcache as its cache. It delivers the
// Workloads of the demo platform (testdata/crds in the repository): it writes the settings of each into a
// ConfigMap, and reports progress in its status. The parts worth copying:
//
//   - NewManager: the options of a manager, with the cache, its selectors, and indexes from YAML;
//   - WorkloadReconciler: a reconciler that reads only from the cache, with a finalizer and server-side
//     apply;
//   - Routes: types that may be missing, and may be installed and removed while the operator runs.
package delivery
