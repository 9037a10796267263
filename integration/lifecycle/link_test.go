package lifecycle_test

import (
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// link is a connection that can be cut. Its zero value is usable.
type link struct {
	once   sync.Once
	faults *conformance.Faults
}

// through returns the configuration, changed so that its requests go through the link.
func (l *link) through(config *rest.Config) *rest.Config {
	l.once.Do(func() { l.faults = conformance.NewFaults(nil) })
	config.Wrap(l.faults.Wrap)
	return config
}

// cut ends all watches in a way that they cannot be taken up where they were, and holds all requests.
func (l *link) cut() (release func()) {
	release = l.faults.Hold()
	l.faults.ExpireWatches()
	return release
}

// halfway lets answers through in part, until it breaks them off.
type halfway struct {
	reached chan struct{} // gets one for each answer that stops
	broken  chan struct{} // closed by breakOff
}

func newHalfway() *halfway {
	return &halfway{reached: make(chan struct{}, 64), broken: make(chan struct{})}
}

// await waits until an answer has stopped in its middle.
func (h *halfway) await(s *scene) {
	s.Helper()
	select {
	case <-h.reached:
	case <-s.ctx.Done():
		s.Fatal("no answer has come")
	}
}

// breakOff ends the answers that have stopped as a broken connection does, and lets others through.
func (h *halfway) breakOff() { close(h.broken) }

func (h *halfway) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK {
			return response, err
		}
		select {
		case <-h.broken:
		default:
			response.Body = &halfBody{ReadCloser: response.Body, halfway: h, closed: make(chan struct{})}
		}
		return response, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// halfBody stops behind its first bytes.
type halfBody struct {
	io.ReadCloser
	halfway *halfway
	begun   bool
	once    sync.Once
	closed  chan struct{} // by Close
}

// Read implements io.Reader.
func (b *halfBody) Read(p []byte) (int, error) {
	if !b.begun {
		n, err := b.ReadCloser.Read(p[:min(len(p), 200)])
		b.begun = n > 0
		return n, err
	}
	b.halfway.reached <- struct{}{}
	select {
	case <-b.halfway.broken:
	case <-b.closed:
	}
	return 0, io.ErrUnexpectedEOF
}

// Close implements io.Closer.
func (b *halfBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}
