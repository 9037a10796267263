package harness

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
)

// Cluster is a separate control plane of one test. It is not safe for concurrent use.
type Cluster struct{ plane *controlPlane }

// AnotherCluster starts an empty etcd and API server, which end with the test. Resource versions start from
// the beginning.
func AnotherCluster(t testing.TB) *Cluster {
	t.Helper()
	plane(t) // skips the test if there are no binaries
	dir, err := os.MkdirTemp(currentSuite(t).dir, "another-")
	if err != nil {
		t.Fatal(err)
	}
	p, unavailable, err := start(dir)
	if unavailable != nil || err != nil {
		t.Fatalf("starting another control plane: %v %v", unavailable, err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stopping another control plane: %v", err)
		}
	})
	return &Cluster{plane: p}
}

// Config returns a new configuration for AdminContext, without a client-side rate limit.
func (c *Cluster) Config(t testing.TB) *rest.Config {
	t.Helper()
	return configFrom(t, c.plane.kubeconfig(), AdminContext)
}

// RestartAPIServer works like the function of the same name.
func (c *Cluster) RestartAPIServer(t testing.TB) {
	t.Helper()
	withControlTimeout(t, c.plane.restartAPIServer)
}

// Compact works like the function of the same name.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	withControlTimeout(t, c.plane.compact)
}
