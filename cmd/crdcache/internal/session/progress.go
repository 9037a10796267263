package session

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

const (
	// progressDelay is the time before the first progress line.
	progressDelay = time.Second
	// progressInterval is the time between two updates.
	progressInterval = 200 * time.Millisecond
)

// traffic counts the bytes received from a server.
type traffic struct{ received atomic.Int64 }

// wrap counts the received bytes of a transport.
func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.Body != nil {
			response.Body = &countedBody{response.Body, t}
		}
		return response, err
	})
}

// RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countedBody struct {
	io.ReadCloser
	traffic *traffic
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.traffic.received.Add(int64(n))
	return n, err
}

// Progress updates one line on stderr until the returned function is called, which removes the line. It does
// nothing if stderr is not a terminal with control sequences.
func (t *Target) Progress(synced func() (done, total int)) (stop func()) {
	if !print.HasControlSequences(t.ErrOut) {
		return func() {}
	}
	quit := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { t.showProgress(synced, quit) }) // ended by quit
	return sync.OnceFunc(func() {
		close(quit)
		shown.Wait()
	})
}

func (t *Target) showProgress(synced func() (done, total int), quit <-chan struct{}) {
	begun := time.Now()
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			print.WriteStatus(t.ErrOut, "")
			return
		case <-timer.C:
		}
		done, total := synced()
		print.WriteStatus(t.ErrOut, progressLine(done, total, t.traffic.received.Load(), time.Since(begun)))
		timer.Reset(progressInterval)
	}
}

// progressLine returns the progress in a text that fits narrow terminals.
func progressLine(done, total int, received int64, passed time.Duration) string {
	const mebibyte = 1 << 20
	size := strconv.FormatInt(received/mebibyte, 10)
	if received < 10*mebibyte {
		size = strconv.FormatFloat(float64(received)/mebibyte, 'f', 1, 64)
	}
	return fmt.Sprintf("synced %d of %d types, %s MiB, %d s", done, total, size, int(passed.Seconds()))
}
