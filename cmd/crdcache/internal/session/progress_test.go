package session

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestTraffic verifies that the received bytes are counted and not changed.
func TestTraffic(t *testing.T) {
	const body = `{"kind":"List","items":[{},{}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, body)
	}))
	defer server.Close()
	var counted traffic
	client := &http.Client{Transport: counted.wrap(server.Client().Transport)}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if got, err := io.ReadAll(response.Body); err != nil || string(got) != body {
		t.Errorf("received %q, %v, want %q", got, err, body)
	}
	if n := counted.received.Load(); n != int64(len(body)) {
		t.Errorf("counted %d bytes, want %d", n, len(body))
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

// TestNoProgressWithoutTerminal verifies that no progress is written to files and pipes.
func TestNoProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	target := &Target{IOStreams: genericiooptions.IOStreams{ErrOut: &out}}
	stop := target.Progress(func() (int,
		int) {
		t.Error("Progress called the function without a terminal")
		return 0, 0
	})
	stop()
	stop()
	if out.Len() > 0 {
		t.Errorf("Progress without a terminal wrote %q, want nothing", out.String())
	}
}
