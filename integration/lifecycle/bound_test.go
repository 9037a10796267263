package lifecycle_test

import (
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestListsAreBounded: no more first lists are under way at once than may be, whatever their number.
func TestListsAreBounded(t *testing.T) {
	const kinds, bound = 40, 3
	var l link
	var under gauge
	config := harness.Config(t)
	config.Wrap(under.wrap)
	config = l.through(config)
	l.faults.RefuseWatchList()
	s := newScene(t, dynamicinformer.Options{Config: config, ListConcurrency: bound}, nil)
	definitions := s.installMany(kinds)
	s.awaitMany(definitions)
	release := l.faults.Hold() // or they might happen to come one after the other
	for _, d := range definitions {
		if _, err := s.factory.ForResource(resourceOf(d)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	if most := under.most(); most == 0 || most > bound {
		t.Errorf("%d lists were under way at once, want 1 to %d", most, bound)
	}
}

// gauge counts the lists that are under way, from the request to the end of the answer.
type gauge struct {
	mu           sync.Mutex
	now, highest int
}

func (g *gauge) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Has("watch") {
			return next.RoundTrip(r)
		}
		g.change(1)
		response, err := next.RoundTrip(r)
		if err != nil {
			g.change(-1)
			return response, err
		}
		response.Body = &counted{ReadCloser: response.Body, end: sync.OnceFunc(func() { g.change(-1) })}
		return response, nil
	})
}

func (g *gauge) change(by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += by
	g.highest = max(g.highest, g.now)
}

func (g *gauge) most() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.highest
}

type counted struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (c *counted) Close() error {
	c.end()
	return c.ReadCloser.Close()
}
