package session

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

const (
	// progressDelay is the time before the first progress line.
	patience = time.Second
	// progressInterval is the time between two updates.
	interval = 200 * time.Millisecond
)

// Traffic counts the bytes received from a server.
type Traffic struct {
	received, objects atomic.Int64
	// counting says that somebody looks at objects, which takes a look at every byte.
	counting atomic.Bool

	mu struct {
		sync.Mutex
		// remaining are, by the path of a list, the objects that the server says are still to come.
		remaining map[string]int64
	}
}

// Wrap counts the bytes that a transport receives.
func (t *Traffic) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err != nil || response.Body == nil {
			return response, err
		}
		body := &countedBody{ReadCloser: response.Body, traffic: t}
		if t.counting.Load() && response.StatusCode == http.StatusOK {
			body.items = &itemCounter{watch: r.URL.Query().Get("watch") != "",
				tell: func(objects int, remaining int64) { t.tell(r.URL.Path, objects, remaining) }}
		}
		response.Body = body
		return response, nil
	})
}

// tell counts objects of a list or a watch; remaining is below zero unless a page has just ended that says
// what comes after it.
func (t *Traffic) tell(path string, objects int, remaining int64) {
	t.objects.Add(int64(objects))
	t.mu.Lock()
	defer t.mu.Unlock()
	if remaining >= 0 {
		if t.mu.remaining == nil {
			t.mu.remaining = map[string]int64{}
		}
		t.mu.remaining[path] = remaining
	} else if left, ok := t.mu.remaining[path]; ok {
		t.mu.remaining[path] = max(0, left-int64(objects))
	}
}

// expected is how many objects there will be, as far as the server says; 0 where it does not.
func (t *Traffic) expected() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left int64
	for _, n := range t.mu.remaining {
		left += n
	}
	if left == 0 {
		return 0
	}
	return t.objects.Load() + left
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type countedBody struct {
	io.ReadCloser
	traffic *Traffic
	items   *itemCounter // nil where objects are not counted
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.traffic.received.Add(int64(n))
	if b.items != nil {
		_, _ = b.items.Write(p[:n])
	}
	return n, err
}

// ShowProgress updates one line on w until the returned function is called, which removes the line. It does
// nothing if w is not a terminal with control sequences.
func ShowProgress(w io.Writer, traffic *Traffic, synced func() (done, all int)) (stop func()) {
	if !print.Controllable(w) {
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

func showProgress(w io.Writer, traffic *Traffic, synced func() (done, all int), quit <-chan struct{}) {
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
		print.WriteStatus(w, progressLine(done, all, traffic.objects.Load(), traffic.expected(),
			traffic.received.Load(), time.Since(begun)))
		timer.Reset(interval)
	}
}

// progressLine fits narrow terminals.
func progressLine(done, all int, objects, expected, received int64, passed time.Duration) string {
	const mebibyte = 1 << 20
	text := ""
	if all > 1 {
		text = fmt.Sprintf("synced %d of %d types, ", done, all)
	}
	text += grouped(objects)
	if expected > objects {
		text += " of " + grouped(expected)
	}
	size := strconv.FormatInt(received/mebibyte, 10)
	if received < 10*mebibyte {
		size = strconv.FormatFloat(float64(received)/mebibyte, 'f', 1, 64)
	}
	return fmt.Sprintf("%s objects, %s MiB, %d s", text, size, int(passed.Seconds()))
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// itemCounter counts the objects in the body of a list or a watch while it passes by. What it reads is only
// shown to a person, so it looks at the structure of the JSON alone, and takes anything.
type itemCounter struct {
	watch bool
	// tell is told of objects, and at the end of a page of how many come after it; below zero that is not
	// known.
	tell func(objects int, remaining int64)

	depth           int
	inArray         bool // the container at depth 2 is an array: that of the items
	quoted, escaped bool
	head            []byte // what came before the items, or the beginning of an event
	remaining       int64  // after this page; below zero where that is not known
	known           bool   // it was looked for
}

// maxHead is more than comes before the items of a list.
const maxHead = 4 << 10

var remainingItems = regexp.MustCompile(`"remainingItemCount":\s*(\d+)`)

// Write takes a part of the body.
func (c *itemCounter) Write(p []byte) (int, error) {
	objects := 0
	for _, b := range p {
		if !c.known && len(c.head) < maxHead {
			c.head = append(c.head, b)
		}
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			objects += c.open(b)
		case b == '}' || b == ']':
			c.depth--
			objects += c.close()
			if c.known && c.depth == 0 && c.remaining >= 0 { // the end of the page
				c.tell(objects, -1)
				c.tell(0, c.remaining)
				objects, c.remaining = 0, -1
			}
		}
	}
	if objects > 0 {
		c.tell(objects, -1)
	}
	return len(p), nil
}

func (c *itemCounter) open(b byte) int {
	c.depth++
	if c.watch {
		return 0
	}
	if c.depth == 2 {
		if c.inArray = b == '['; c.inArray && !c.known {
			c.known, c.remaining = true, -1
			if found := remainingItems.FindSubmatch(c.head); found != nil {
				if n, err := strconv.ParseInt(string(found[1]), 10, 64); err == nil {
					c.remaining = n
				}
			}
			c.head = nil
		}
	}
	if c.depth == 3 && c.inArray {
		return 1
	}
	return 0
}

func (c *itemCounter) close() int {
	if !c.watch || c.depth > 0 {
		return 0
	}
	bookmark := bytes.HasPrefix(bytes.TrimSpace(c.head), []byte(`{"type":"BOOKMARK"`))
	c.head = c.head[:0]
	if bookmark {
		return 0
	}
	return 1
}
