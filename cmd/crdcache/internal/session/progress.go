package session

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

const (
	// patience is how long a sync may take before anything is shown.
	patience = time.Second
	// interval is the time between two updates.
	interval = 200 * time.Millisecond
)

// ByteCounter counts the bytes that come from a server.
type ByteCounter struct{ received atomic.Int64 }

// Wrap counts what a transport receives.
func (c *ByteCounter) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.Body != nil {
			response.Body = &countedBody{ReadCloser: response.Body, counter: c}
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countedBody struct {
	io.ReadCloser
	counter *ByteCounter
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.counter.received.Add(int64(n))
	return n, err
}

// ShowProgress updates one line on w until the returned func is called, which takes the line away again. Where w is no
// terminal, or a dumb one, it does nothing.
func ShowProgress(w io.Writer, counter *ByteCounter, synced func() (done, all int)) (stop func()) {
	if !print.Controllable(w) {
		return func() {}
	}
	quit := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { showProgress(w, counter, synced, quit) }) // ended by quit
	return sync.OnceFunc(func() {
		close(quit)
		shown.Wait()
	})
}

func showProgress(w io.Writer, counter *ByteCounter, synced func() (done, all int), quit <-chan struct{}) {
	begun := time.Now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			print.WriteStatus(w, "")
			return
		case <-timer.C:
		}
		done, all := synced()
		print.WriteStatus(w, progressLine(done, all, counter.received.Load(), time.Since(begun)))
		timer.Reset(interval)
	}
}

// progressLine is short enough for narrow terminals.
func progressLine(done, all int, received int64, passed time.Duration) string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("synced %d of %d, %.1f MiB, %v", done, all, float64(received)/mebibyte, passed.Round(time.Second))
}
