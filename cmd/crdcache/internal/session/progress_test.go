package session

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTraffic counts the received bytes and does not change them.
func TestTraffic(t *testing.T) {
	item := `{"metadata":{"name":"a\\\"{[","labels":{"b":"]"}},"spec":{"list":[{},{}]}}`
	pages := map[string]string{
		"/list?limit=2":            `{"kind":"List","metadata":{"resourceVersion":"1","continue":"x","remainingItemCount":3},"items":[` + item + "," + item + `]}`,
		"/list?limit=2&continue=x": `{"kind":"List","metadata":{"resourceVersion":"1","continue":"y","remainingItemCount":1},"items":[` + item + "," + item + `]}`,
		"/list?limit=2&continue=y": `{"kind":"List","metadata":{"resourceVersion":"1"},"items":[` +
			item + `]}`,
		"/other?watch=true": `{"type":"ADDED","object":` + item + "}\n" +
			`{"type":"BOOKMARK","object":` + item + "}\n" + `{"type":"DELETED","object":` + item + "}\n",
		"/object": item,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		io.WriteString(w, pages[r.URL.String()])
	}))
	defer server.Close()
	var traffic Traffic
	traffic.counting.Store(true)
	client := &http.Client{Transport: traffic.Wrap(server.Client().Transport)}
	sum := 0
	for _, step := range []struct {
		path              string
		objects, expected int64
	}{
		{"/list?limit=2", 2, 5}, {"/list?limit=2&continue=x", 4, 5}, {"/list?limit=2&continue=y", 5,
			0}, {"/other?watch=true", 7, 0}, {"/object", 7, 0},
	} {
		response, err := client.Get(server.URL + step.path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = io.CopyBuffer(struct{ io.Writer }{&body}, struct{ io.Reader }{response.Body},
			make([]byte, 7))
		response.Body.Close()
		sum += body.Len()
		if err != nil || body.String() != pages[step.path] {
			t.Errorf("%s: %v, %q came", step.path, err, &body)
		}
		if objects, expected := traffic.objects.Load(), traffic.expected(); objects != step.objects ||
			expected != step.expected {
			t.Errorf("%s: %d of %d objects were counted, want %d of %d", step.path, objects, expected,
				step.objects, step.expected)
		}
	}
	if received := traffic.received.Load(); received != int64(sum) {
		t.Errorf("%d bytes were counted, want %d", received, sum)
	}
}

// TestProgressLine checks the texts and that they fit narrow terminals.
func TestProgressLine(t *testing.T) {
	const mebibyte = 1 << 20
	for want, got := range map[string]string{
		"12,400 objects, 31 MiB, 4 s": progressLine(0, 1, 12_400, 0, 31*mebibyte,
			4200*time.Millisecond),
		"12,400 of 50,000 objects, 1.5 MiB, 0 s": progressLine(0, 1, 12_400, 50_000,
			3*mebibyte/2, 100*time.Millisecond),
		"synced 1 of 2 types, 7 objects, 0.0 MiB, 1 s": progressLine(1, 2, 7, 0, 0, time.Second),
		"synced 99 of 99 types, 999,999 objects, 99999 MiB, 999 s": progressLine(99, 99, 999_999, 0,
			99_999*mebibyte, 999*time.Second),
	} {
		if got != want || len(got) > 60 {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestShowNoTerminal writes nothing to files and pipes.
func TestShowNoTerminal(t *testing.T) {
	var out bytes.Buffer
	var traffic Traffic
	stop := ShowProgress(&out, &traffic, func() (int, int) { t.Error("asked how far it is"); return 0, 0 })
	stop()
	stop()
	if out.Len() > 0 || traffic.counting.Load() {
		t.Error(fmt.Sprintf("%q was written", out.String()), traffic.counting.Load())
	}
}

// FuzzItemCounter: nothing that a server sends makes the counter fail, and no way of cutting it makes it
// count otherwise.
func FuzzItemCounter(f *testing.F) {
	f.Add(`{"metadata":{"remainingItemCount":7},"items":[{"a":"}"},{}]}`, 3, false)
	f.Add(`{"type":"ADDED","object":{}}`+"\n"+`]]}{"`, 1, true)
	f.Fuzz(func(t *testing.T, body string, cut int, watch bool) {
		count := func(parts ...string) (sum int, last int64) {
			last = -1
			c := &itemCounter{watch: watch, tell: func(objects int, remaining int64) {
				sum += objects
				last = max(last, remaining)
			}}
			for _, part := range parts {
				_, _ = c.Write([]byte(part))
			}
			return sum, last
		}
		cut = min(max(cut, 0), len(body))
		sum, last := count(body)
		if s, l := count(body[:cut], body[cut:]); s != sum || l != last &&
			strings.Count(body, "remainingItemCount") < 2 {
			t.Errorf("%d and %d in one piece, %d and %d in two", sum, last, s, l)
		}
	})
}
