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
	progressDelay    = time.Second
	progressInterval = 200 * time.Millisecond
)

// receivedBytes counts the bytes received from a server.
type receivedBytes struct{ received atomic.Int64 }

func (t *receivedBytes) wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.Body != nil {
			response.Body = &countedBody{response.Body, t}
		}
		return response, err
	})
}

type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countedBody struct {
	io.ReadCloser
	traffic *receivedBytes
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.traffic.received.Add(int64(n))
	return n, err
}

// Progress updates a progress line on stderr until stop is called. stop removes the line. Without a terminal
// that supports control sequences, only the report has the line.
func (t *Target) Progress(synced func() (done, total int)) (stop func()) {
	start := time.Now()
	line := func() string {
		done, total := synced()
		return progressLine(done, total, t.traffic.received.Load(), time.Since(start))
	}
	if t.report != nil {
		t.report.progress.Store(&line)
	}
	if !print.HasControlSequences(t.ErrOut) {
		return func() {}
	}
	quit := make(chan struct{})
	var updater sync.WaitGroup
	updater.Go(func() { t.showProgress(line, quit) }) // ended by quit
	return sync.OnceFunc(func() {
		close(quit)
		updater.Wait()
	})
}

func (t *Target) showProgress(line func() string, quit <-chan struct{}) {
	for pause := progressDelay; ; pause = progressInterval {
		select {
		case <-quit:
			print.WriteStatus(t.ErrOut, "")
			return
		case <-time.After(pause):
		}
		print.WriteStatus(t.ErrOut, line())
	}
}

// progressLine returns a text that fits narrow terminals.
func progressLine(done, total int, received int64, elapsed time.Duration) string {
	const mebibyte = 1 << 20
	size := strconv.FormatInt(received/mebibyte, 10)
	if received < 10*mebibyte {
		size = strconv.FormatFloat(float64(received)/mebibyte, 'f', 1, 64)
	}
	if total == 0 {
		return fmt.Sprintf("read %s MiB, %d s", size, int(elapsed.Seconds()))
	}
	return fmt.Sprintf("synced %d of %d types, %s MiB, %d s", done, total, size, int(elapsed.Seconds()))
}
