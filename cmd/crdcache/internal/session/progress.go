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

// Traffic counts the bytes and objects received from a server.
type Traffic struct {
	received, objects atomic.Int64
	// counting is set if objects are counted, which reads every byte.
	counting atomic.Bool

	mu struct {
		sync.Mutex
		// remaining has the number of objects to come by the path of a list, if the server has reported it.
		remaining map[string]int64
	}
}

// Wrap counts the received bytes and objects of a transport.
func (t *Traffic) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || response.Body == nil {
			return response, err
		}
		body := &countedBody{ReadCloser: response.Body, traffic: t}
		if t.counting.Load() && response.StatusCode == http.StatusOK {
			path := r.URL.Path
			body.items = &itemCounter{watch: r.URL.Query().Get("watch") != "", onItem: func() { t.add(path) },
				onRemaining: func(remaining int64) { t.setRemaining(path, remaining) }}
		}
		response.Body = body
		return response, nil
	})
}

func (t *Traffic) add(path string) {
	t.objects.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.remaining[path] > 0 {
		t.mu.remaining[path]--
	}
}

func (t *Traffic) setRemaining(path string, remaining int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.remaining == nil {
		t.mu.remaining = map[string]int64{}
	}
	t.mu.remaining[path] = remaining
}

// expectedTotal returns the number of received objects and of those to come on further pages.
func (t *Traffic) expectedTotal() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	total := t.objects.Load()
	for _, n := range t.mu.remaining {
		total += n
	}
	return total
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countedBody struct {
	io.ReadCloser
	traffic *Traffic
	items   *itemCounter // nil if objects are not counted
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.traffic.received.Add(int64(n))
	if b.items != nil {
		b.items.count(p[:n])
	}
	return n, err
}

// ShowProgress updates one line on w until the returned function is called, which removes the line. It does
// nothing if w is not a terminal with control sequences.
func ShowProgress(w io.Writer, traffic *Traffic, synced func() (done, total int)) (stop func()) {
	if !print.HasControlSequences(w) {
		return func() {}
	}
	traffic.counting.Store(true)
	quit := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { showProgress(w, traffic, synced, quit) }) // ended by quit
	return sync.OnceFunc(func() {
		close(quit)
		shown.Wait()
	})
}

func showProgress(w io.Writer, traffic *Traffic, synced func() (done, total int), quit <-chan struct{}) {
	begun := time.Now()
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			print.WriteStatus(w, "")
			return
		case <-timer.C:
		}
		done, total := synced()
		print.WriteStatus(w, progressLine(done, total, traffic.objects.Load(), traffic.expectedTotal(),
			traffic.received.Load(), time.Since(begun)))
		timer.Reset(progressInterval)
	}
}

// progressLine fits narrow terminals.
func progressLine(done, total int, objects, expected, received int64, passed time.Duration) string {
	const mebibyte = 1 << 20
	text := ""
	if total > 1 {
		text = fmt.Sprintf("synced %d of %d types, ", done, total)
	}
	text += formatThousands(objects)
	if expected > objects {
		text += " of " + formatThousands(expected)
	}
	size := strconv.FormatInt(received/mebibyte, 10)
	if received < 10*mebibyte {
		size = strconv.FormatFloat(float64(received)/mebibyte, 'f', 1, 64)
	}
	return fmt.Sprintf("%s objects, %s MiB, %d s", text, size, int(passed.Seconds()))
}

// formatThousands writes a number with commas between thousands.
func formatThousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
