// Package delivery is an operator on controller-runtime with crdcache as its cache, for the tests in the
// folder above. It delivers the Workloads of the demo platform (testdata/crds): it writes the settings of
// each into a ConfigMap, and reports progress in its status. It uses features that small examples omit:
//
//   - NewManager, NewShardedManager: a selector, indexes from YAML, leader election or shards;
//   - WorkloadReconciler: a finalizer and server-side apply;
//   - Routes: types that may be missing, and may be installed and removed while the operator runs.
package delivery
