package crdcached_test

import (
	"fmt"
	"net"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/crdcached/running"
	"github.com/crdcache/crdcache/integration/harness"
)

// daemon is a crdcached that stays at its address.
type daemon struct {
	*testing.T
	kubeconfig, keeps, port string
	server                  *running.Server
}

// startDaemon starts a crdcached that keeps types, and returns when they are served.
func startDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemon {
	t.Helper()
	d := newDaemon(t, gvrs...)
	d.restart()
	return d
}

// newDaemon returns a crdcached that has not started.
func newDaemon(t *testing.T, gvrs ...schema.GroupVersionResource) *daemon {
	t.Helper()
	d := &daemon{T: t, kubeconfig: running.Kubeconfig(t), keeps: "types:\n"}
	for _, gvr := range gvrs {
		d.keeps += fmt.Sprintf("- %s\n", gvr.GroupResource())
	}
	_, port, err := net.SplitHostPort(reserve(t))
	if err != nil {
		t.Fatal(err)
	}
	d.port = port
	return d
}

// restart implements server.
func (d *daemon) restart() {
	d.Helper()
	d.server = running.StartIn(d, d.kubeconfig, d.keeps, "--secure-port="+d.port)
}

// kill implements server.
func (d *daemon) kill() { d.server.Kill() }

// config implements server. It is good for each of the certificates that the daemon makes when it starts.
func (d *daemon) config() *rest.Config {
	config := d.server.As(harness.Config(d))
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	return config
}
