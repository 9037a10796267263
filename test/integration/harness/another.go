package harness

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/testkit"
)

// EtcdAddress returns the host and port of etcd.
func EtcdAddress(t testing.TB) string {
	t.Helper()
	etcd, err := url.Parse(APIServerFlag(t, "--etcd-servers"))
	must(t, err)
	return etcd.Host
}

// APIServerFlag returns the value of a flag of the running API server, such as "--etcd-servers".
func APIServerFlag(t testing.TB, name string) string {
	t.Helper()
	for _, arg := range apiServerCommand(t) {
		if value, found := strings.CutPrefix(arg, name+"="); found {
			return value
		}
	}
	t.Fatalf("the API server has no flag %s", name)
	return ""
}

// StartAnotherAPIServer runs a second API server until the test ends and returns its address. Both servers
// share the data, users and certificate. The second one reaches etcd at the given address, which can be a
// proxy. The flags are added to the flags of the first server.
func StartAnotherAPIServer(t testing.TB, etcd string, flags ...string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address = listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	_ = listener.Close()
	command := append(apiServerCommand(t), flags...)
	for i, arg := range command {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "--etcd-servers":
			command[i] = "--etcd-servers=http://" + etcd
		case "--secure-port":
			command[i] = "--secure-port=" + port
		}
	}
	// The server ends when the pipe closes, so it never outlives this process.
	script := `"$@" & read -r line; kill -9 $!`
	run := exec.Command("sh", append([]string{"-c", script, "another"}, command...)...)
	stdin, err := run.StdinPipe()
	must(t, err)
	must(t, run.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = run.Wait() // killed
	})
	config := Config(t)
	config.Host = "https://" + address
	client, err := rest.UnversionedRESTClientFor(unversioned(config))
	must(t, err)
	Eventually(t, func(ctx context.Context) error { return client.Get().AbsPath("/readyz").Do(ctx).Error() })
	return address
}

// apiServerCommand returns the command line of the API server.
func apiServerCommand(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", APIServerPID(t)))
	must(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Cluster is a separate control plane of one test. It is not safe for concurrent use.
type Cluster struct{ *testkit.Sandbox }

// StartAnotherCluster starts an empty etcd and API server, which end with the test. Resource versions start
// from the beginning.
func StartAnotherCluster(t testing.TB) *Cluster {
	t.Helper()
	requireControlPlane(t) // skips the test if there are no binaries
	dir, err := os.MkdirTemp(currentSuite(t).dir, "another-")
	must(t, err)
	p, unavailable, err := startControlPlane(dir)
	if unavailable != nil || err != nil {
		t.Fatalf("starting another control plane: %v %v", unavailable, err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Errorf("stopping another control plane: %v", err)
		}
	})
	return &Cluster{p}
}

// Config returns a new configuration of a user with all rights, without a client-side rate limit.
func (c *Cluster) Config(t testing.TB) *rest.Config {
	t.Helper()
	return configFrom(t, c.Kubeconfig)
}

// RestartAPIServer restarts the API server of the cluster, like the function RestartAPIServer.
func (c *Cluster) RestartAPIServer(t testing.TB) {
	t.Helper()
	must(t, c.Do("restart apiserver"))
}

// Compact discards the history of the cluster's etcd, like the function Compact.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	must(t, c.Do("compact"))
}
