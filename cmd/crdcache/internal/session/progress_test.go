package session

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTraffic verifies that the received bytes are counted and not changed.
func TestTraffic(t *testing.T) {
	const body = `{"kind":"List","items":[{},{}]}`
	var counted receivedBytes
	client := http.Client{Transport: counted.wrap(RoundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{Body: io.NopCloser(strings.NewReader(body))}, nil
	}))}
	response, err := client.Get("http://server.example")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(response.Body)
	if n := counted.received.Load(); err != nil || string(got) != body || n != int64(len(body)) {
		t.Errorf("received %q, %v, and counted %d bytes, want %q and %d", got, err, n, body, len(body))
	}
}

// TestProgressLine checks the texts and that they fit narrow terminals.
func TestProgressLine(t *testing.T) {
	const mebibyte = 1 << 20
	for want, got := range map[string]string{
		"synced 0 of 1 types, 31 MiB, 4 s":          progressLine(0, 1, 31*mebibyte, 4200*time.Millisecond),
		"synced 1 of 2 types, 1.5 MiB, 0 s":         progressLine(1, 2, 3*mebibyte/2, 100*time.Millisecond),
		"synced 99 of 99 types, 99999 MiB, 86400 s": progressLine(99, 99, 99_999*mebibyte, 24*time.Hour),
	} {
		if got != want || len(got) > 60 {
			t.Errorf("progressLine() = %q, want %q", got, want)
		}
	}
}
