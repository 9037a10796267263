package session

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestTraffic counts bytes and objects, however they are split, and does not change them.
func TestTraffic(t *testing.T) {
	const at = `"metadata":{"name":"a\\\"{[","creationTimestamp":"2026-01-01T00:00:00Z"}`
	const item = `{` + at + `,"spec":{"list":[{` + at + `},{}]}}`
	pages := map[string]string{
		"/list?limit=2": `{"kind":"List","metadata":{"continue":"x","remainingItemCount":3},"items":[` +
			item + "," + item + `]}`,
		"/list?limit=2&continue=x": `{"kind":"List","items": [` + item + "," + item +
			`],"metadata":{"continue":"y","remainingItemCount": 1}}`,
		"/list?limit=2&continue=y": `{"kind":"List","items":[` + item + `]}`,
		"/table":                   `{"kind":"Table","columnDefinitions":[{},{}],"rows":[{"object":` + item + `}]}`,
		"/other?watch=true": `{"type":"ADDED","object":` + item + "}\n" + `{"type":"BOOKMARK","object":` + item +
			"}\n" + `{"type":"DELETED","object":` + item + "}\n",
		"/object": item,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, pages[r.URL.String()])
	}))
	defer server.Close()
	for _, size := range []int{1, 7, 4096} {
		var traffic Traffic
		traffic.counting.Store(true)
		client := &http.Client{Transport: traffic.Wrap(server.Client().Transport)}
		received := 0
		for _, step := range []struct {
			path              string
			objects, expected int64
		}{
			{"/list?limit=2", 2, 5}, {"/list?limit=2&continue=x", 4, 5}, {"/list?limit=2&continue=y", 5, 5},
			{"/table", 6, 6}, {"/other?watch=true", 8, 8}, {"/object", 8, 8},
		} {
			response, err := client.Get(server.URL + step.path)
			if err != nil {
				t.Fatal(err)
			}
			var body bytes.Buffer
			_, err = io.CopyBuffer(struct{ io.Writer }{&body}, struct{ io.Reader }{response.Body},
				make([]byte, size))
			response.Body.Close()
			received += body.Len()
			if err != nil || body.String() != pages[step.path] {
				t.Errorf("%s: received %q, %v", step.path, &body, err)
			}
			objects, expected := traffic.objects.Load(), traffic.expectedTotal()
			if objects != step.objects || expected != step.expected {
				t.Errorf("%s in parts of %d: counted %d of %d objects, want %d of %d", step.path, size,
					objects, expected, step.objects, step.expected)
			}
		}
		if n := traffic.received.Load(); n != int64(received) {
			t.Errorf("counted %d bytes, want %d", n, received)
		}
	}
}

// TestProgressLine checks the texts and that they fit narrow terminals.
func TestProgressLine(t *testing.T) {
	const mebibyte = 1 << 20
	for want, got := range map[string]string{
		"12,400 objects, 31 MiB, 4 s": progressLine(0, 1, 12_400, 12_400, 31*mebibyte,
			4200*time.Millisecond),
		"12,400 of 50,000 objects, 1.5 MiB, 0 s": progressLine(0, 1, 12_400, 50_000, 3*mebibyte/2,
			100*time.Millisecond),
		"synced 1 of 2 types, 7 objects, 0.0 MiB, 1 s": progressLine(1, 2, 7, 7, 0, time.Second),
		"synced 99 of 99 types, 999,999 objects, 99999 MiB, 999 s": progressLine(99, 99, 999_999, 999_999,
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
	stop := ShowProgress(&out, &traffic, func() (int, int) { t.Error("called"); return 0, 0 })
	stop()
	stop()
	if out.Len() > 0 || traffic.counting.Load() {
		t.Error(fmt.Sprintf("%q was written", out.String()), traffic.counting.Load())
	}
}
