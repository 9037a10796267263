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
	item := `{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"metadata":{"creationTimestamp":null}}}`
	page := `{"kind":"List","items":[` + item + "," + item + `]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, page)
	}))
	defer server.Close()
	for _, size := range []int{1, 7, 4096} {
		var traffic Traffic
		traffic.counting.Store(true)
		response, err := (&http.Client{Transport: traffic.Wrap(server.Client().Transport)}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = io.CopyBuffer(struct{ io.Writer }{&body}, struct{ io.Reader }{response.Body},
			make([]byte, size))
		response.Body.Close()
		if err != nil || body.String() != page {
			t.Errorf("received %q, %v", &body, err)
		}
		if n, bytes := traffic.objects.Load(), traffic.received.Load(); n != 2 || bytes != int64(len(page)) {
			t.Errorf("in parts of %d: counted %d objects and %d bytes", size, n, bytes)
		}
	}
}

// TestProgressLine checks the texts and that they fit narrow terminals.
func TestProgressLine(t *testing.T) {
	const mebibyte = 1 << 20
	for want, got := range map[string]string{
		"12,400 objects, 31 MiB, 4 s": progressLine(0, 1, 12_400, 31*mebibyte,
			4200*time.Millisecond),
		"synced 1 of 2 types, 7 objects, 0.0 MiB, 1 s": progressLine(1, 2, 7, 0, time.Second),
		"synced 99 of 99 types, 999,999 objects, 99999 MiB, 999 s": progressLine(99, 99, 999_999,
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
