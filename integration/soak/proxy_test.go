package soak_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/url"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

// proxy is between informers and the API server.
type proxy struct{ *toxiproxy.Proxy }

func startProxy(t testing.TB) proxy {
	t.Helper()
	server, err := url.Parse(harness.Config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	p := proxy{toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "api", "127.0.0.1:0", server.Host)}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// config returns a configuration whose connections go through the proxy, and are shared with no other.
func (p proxy) config(t testing.TB) *rest.Config {
	t.Helper()
	config := harness.Config(t)
	config.Host = "https://" + p.Listen
	config.Dial = (&net.Dialer{}).DialContext
	return config
}

// cut closes all connections. Until restore is called, others are refused.
func (p proxy) cut(t testing.TB) (restore func()) {
	p.Stop()
	return func() {
		if err := p.Start(); err != nil { // on the port that it had
			t.Error(err)
		}
	}
}

// spoil does something to all bytes on their way to the informers, until restore is called.
func (p proxy) spoil(t testing.TB, kind string, attributes map[string]any) (restore func()) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": kind, "type": kind, "attributes": attributes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := p.Toxics.RemoveToxic(context.Background(), kind); err != nil {
			t.Error(err)
		}
	}
}
