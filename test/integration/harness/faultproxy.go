package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// FaultProxy forwards connections. It is not safe for concurrent use.
type FaultProxy struct{ proxy *toxiproxy.Proxy }

// StartFaultProxy starts a proxy to an address. It ends with the test.
func StartFaultProxy(t testing.TB, upstream string) FaultProxy {
	t.Helper()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy has only a global logger for toxics
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := FaultProxy{toxiproxy.NewProxy(server, "proxy", "127.0.0.1:0", upstream)}
	must(t, p.proxy.Start())
	t.Cleanup(p.proxy.Stop)
	return p
}

// Address returns the host and port of the proxy.
func (p FaultProxy) Address() string { return p.proxy.Listen }

// Cut closes all connections and refuses new ones until restore is called.
func (p FaultProxy) Cut(t testing.TB) (restore func()) {
	p.proxy.Stop()
	return func() {
		if err := p.proxy.Start(); err != nil { // on the same port
			t.Error(err)
		}
	}
}

// Redirect closes all connections and forwards new ones to another address.
func (p FaultProxy) Redirect(t testing.TB, upstream string) {
	t.Helper()
	if err := p.proxy.Update(&toxiproxy.Proxy{Listen: p.proxy.Listen, Upstream: upstream,
		Enabled: true}); err != nil {
		t.Fatal(err)
	}
}

// AddToxic applies a toxic of toxiproxy to all bytes from the server until restore is called.
func (p FaultProxy) AddToxic(t testing.TB, kind string, attributes map[string]any) (restore func()) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"name": kind, "type": kind, "attributes": attributes})
	must(t, err)
	if _, err := p.proxy.Toxics.AddToxicJson(bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := p.proxy.Toxics.RemoveToxic(context.Background(), kind); err != nil {
			t.Error(err)
		}
	}
}
