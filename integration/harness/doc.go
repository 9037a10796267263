// Package harness gives integration tests a real etcd and a real kube-apiserver, one pair for each test
// package.
//
// # Usage
//
//	func TestMain(m *testing.M) { harness.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		client := dynamic.NewForConfigOrDie(harness.Config(t))
//		harness.InstallCRDs(t, harness.Read(t, "../../testdata/crds")...)
//		harness.Apply(t, harness.Read(t, "../../testdata/objects")...)
//		...
//	}
//
// The control plane starts when a test first asks for something of it, and stops when the package's tests
// have ended: tests that need none pay for none. It also stops when the test process dies.
//
// # Where it comes from
//
// The sandbox binary starts it: the one that CRDCACHE_SANDBOX_BIN names, else bin/sandbox in the repository.
// It runs the etcd and kube-apiserver beside it, or those in the folder that KUBEBUILDER_ASSETS names.
// Without these programs a test that needs a control plane is skipped, or fails where
// CRDCACHE_REQUIRE_SANDBOX=1 is set.
//
// CRDCACHE_APISERVER_ARGS holds more flags of kube-apiserver, separated by spaces.
// "feature-gates=WatchList=false" makes it a server without watch-list, as many are.
//
// # Servers that differ
//
// The tests run against every supported version of Kubernetes, with and without watch-list. A test that needs
// what not all of them have says so with [Needs], and [Has] tells one that expects something else of them.
// Nothing else decides by the server.
//
// # Isolation
//
// Tests of a package share the control plane. [Group] and [Namespace] give a test names of its own, and
// [InstallCRDs] and [Apply] take away in the end what they put there. Tests that kill or restart a component
// disturb whatever runs beside them, so they must not be parallel.
//
// There are no controllers beside those in the API server: no pods, no garbage collection, and namespaces
// go only because Namespace finalizes them itself.
package harness
