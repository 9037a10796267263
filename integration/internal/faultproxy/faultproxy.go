// Package faultproxy has a TCP proxy that does to connections what networks do.
package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Proxy passes connections on. Its methods are called one at a time.
type Proxy struct{ proxy *toxiproxy.Proxy }

// Start starts a proxy to an address, which ends with the test.
func Start(t testing.TB, upstream string) Proxy {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxics have no logger of their own
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := Proxy{toxiproxy.NewProxy(server, "proxy", "127.0.0.1:0", upstream)}
	if err := p.proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.proxy.Stop)
	return p
}

// Address returns host and port of the proxy.
func (p Proxy) Address() string { return p.proxy.Listen }

// Cut closes all connections. Until restore is called, others are refused.
func (p Proxy) Cut(t testing.TB) (restore func()) {
	p.proxy.Stop()
	return func() {
		if err := p.proxy.Start(); err != nil { // on the port that it had
			t.Error(err)
		}
	}
}

// Redirect closes all connections and has others lead to another address.
func (p Proxy) Redirect(t testing.TB, upstream string) {
	t.Helper()
	if err := p.proxy.Update(&toxiproxy.Proxy{Listen: p.proxy.Listen, Upstream: upstream,
		Enabled: true}); err != nil {
		t.Fatal(err)
	}
}

// Spoil does to all bytes on their way back what a toxic of toxiproxy does, until restore is called.
func (p Proxy) Spoil(t testing.TB, kind string, attributes map[string]any) (restore func()) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": kind, "type": kind, "attributes": attributes})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := p.proxy.Toxics.RemoveToxic(context.Background(), kind); err != nil {
			t.Error(err)
		}
	}
}
