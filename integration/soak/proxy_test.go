package soak_test

import (
	"net/url"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

// startProxy starts a proxy between informers and the API server.
func startProxy(t testing.TB) harness.FaultProxy {
	t.Helper()
	server, err := url.Parse(harness.Config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	return harness.StartFaultProxy(t, server.Host)
}

// config returns a configuration that connects through the proxy.
func (w *participants) config() *rest.Config {
	w.Helper()
	config := harness.Config(w)
	config.Host = "https://" + w.proxy.Address()
	return config
}
