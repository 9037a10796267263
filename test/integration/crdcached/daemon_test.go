package crdcached_test

import (
	"fmt"
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// daemonServer is a crdcached that keeps its address when it is restarted.
type daemonServer struct {
	*testing.T
	kubeconfig, configText, port string
	server                       *harness.CrdcachedServer
}

// startDaemon starts a crdcached and returns when it serves the types.
func startDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemonServer {
	t.Helper()
	d := newDaemon(t, gvrs...)
	d.restart()
	return d
}

// newDaemon reserves the address of a crdcached, and does not start it.
func newDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemonServer {
	t.Helper()
	d := &daemonServer{T: t, kubeconfig: harness.CrdcachedKubeconfig(t), configText: "types:\n"}
	for _, gvr := range gvrs {
		d.configText += fmt.Sprintf("- %s\n", gvr.GroupResource())
	}
	_, port, err := net.SplitHostPort(reserveAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	d.port = port
	return d
}

func (d *daemonServer) restart() {
	d.Helper()
	d.server = harness.StartCrdcachedIn(d, d.kubeconfig, d.configText, "--secure-port="+d.port)
}

func (d *daemonServer) kill() { d.server.Kill() }

// config implements server. It trusts all certificates that the daemon creates at its starts.
func (d *daemonServer) config() *rest.Config {
	config := d.server.As(harness.Config(d))
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	return config
}
