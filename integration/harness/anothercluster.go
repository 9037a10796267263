package harness

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
)

// Cluster is a control plane beside the one that the tests of a package share. One method is called at a
// time.
type Cluster struct{ plane *controlPlane }

// AnotherCluster starts an etcd and an API server with nothing in them, which end with the test. Their
// resource versions begin where those of any cluster begin.
func AnotherCluster(t testing.TB) *Cluster {
	t.Helper()
	plane(t) // which skips the test where there are no binaries
	dir, err := os.MkdirTemp(current(t).dir, "another-")
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

// RestartAPIServer is the function of this name for this control plane.
func (c *Cluster) RestartAPIServer(t testing.TB) {
	t.Helper()
	steer(t, c.plane.restartAPIServer)
}

// Compact is the function of this name for this control plane.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	steer(t, c.plane.compact)
}
