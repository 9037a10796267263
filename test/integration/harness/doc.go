// Package harness starts a real etcd and kube-apiserver for the integration tests of a package.
//
// # Usage
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		client := dynamic.NewForConfigOrDie(harness.Config(t))
//		harness.InstallCRDs(t, harness.ReadManifests(t, "../../../testdata/crds")...)
//		harness.Apply(t, harness.ReadManifests(t, "../../../testdata/objects")...)
//		...
//	}
//
// The control plane starts when a test first uses it. It stops after the last test of the package, or when
// the test process dies.
//
// # Programs
//
// The sandbox binary starts the control plane. Its path is CRDCACHE_SANDBOX_BIN, by default bin/sandbox in
// the repository. It runs the etcd and kube-apiserver in its own folder, or in KUBEBUILDER_ASSETS if that is
// set. Without these programs, tests that need a control plane are skipped. They fail if
// CRDCACHE_REQUIRE_SANDBOX=1 is set.
//
// CRDCACHE_APISERVER_ARGS has additional flags of kube-apiserver, separated by spaces.
// For example, "feature-gates=WatchList=false" runs a server without watch-lists.
//
// # Differences between servers
//
// The tests run against every supported version of Kubernetes, with and without watch-lists. A test calls
// [Require] if it requires a feature, and [Has] if its expectations depend on one. Tests must not detect the
// server in any other way.
//
// # Isolation
//
// The tests of a package share the control plane. [Group] and [Namespace] return unique names.
// [InstallCRDs] and [Apply] clean up at the end of the test. Tests that kill or restart a component disturb
// other tests, so they must not be parallel.
//
// Only the controllers in the API server run. There are no pods and no garbage collection, and Namespace
// finalizes its namespaces itself.
package harness
