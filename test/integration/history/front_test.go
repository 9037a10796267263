package history_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// switchableAddress is the address at which a process reaches one of several clusters.
type switchableAddress struct {
	*harness.TLSServer
	// faults connects the address with the clusters.
	faults   *conformance.Faults
	backends map[*cluster]http.Handler
	current  atomic.Pointer[http.Handler]
}

func newSwitchableAddress(w *fixture, clusters ...*cluster) *switchableAddress {
	w.Helper()
	f := &switchableAddress{faults: conformance.NewFaults(nil), backends: map[*cluster]http.Handler{}}
	for _, c := range clusters {
		config := c.config()
		target, err := url.Parse(config.Host)
		if err != nil {
			w.Fatal(err)
		}
		transport, err := rest.TransportFor(config)
		if err != nil {
			w.Fatal(err)
		}
		f.backends[c] = &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				// Without the client's header, the transport decompresses responses. The faults then find
				// complete events.
				r.Out.Header.Del("Accept-Encoding")
			},
			Transport: f.faults.Wrap(transport), FlushInterval: -1,
			// forwards the failure to the client
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:     log.New(io.Discard, "", 0),
		}
	}
	f.pointTo(clusters[0])
	f.TLSServer = harness.NewTLSServer(w, http.HandlerFunc(func(rw http.ResponseWriter,
		r *http.Request) {
		(*f.current.Load()).ServeHTTP(rw, r)
	}))
	return f
}

func (f *switchableAddress) pointTo(target *cluster) {
	handler := f.backends[target]
	f.current.Store(&handler)
}

// swap switches to another cluster and breaks all connections.
func (f *switchableAddress) swap(target *cluster) {
	f.pointTo(target)
	f.BreakConnections()
}
