package session

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCounter: what a server sends is counted, and arrives unchanged.
func TestCounter(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
	defer server.Close()
	var counter ByteCounter
	client := &http.Client{Transport: counter.Wrap(server.Client().Transport)}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != text || counter.received.Load() != int64(len(text)) {
		t.Errorf("%v, %d bytes came, %d were counted", err, len(body), counter.received.Load())
	}
}

// TestLine: the line fits into narrow terminals, unless there is a lot of everything.
func TestLine(t *testing.T) {
	if got := progressLine(999, 9999, 1<<40, 100*time.Hour); len(got) > 48 {
		t.Errorf("%q is too long", got)
	}
	if got, want := progressLine(1, 2, 3<<19, 1400*time.Millisecond), "synced 1 of 2, 1.5 MiB, 1s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShowNoTerminal: nothing is written to files and pipes.
func TestShowNoTerminal(t *testing.T) {
	var out bytes.Buffer
	stop := ShowProgress(&out, &ByteCounter{}, func() (int, int) { t.Error("asked how far it is"); return 0, 0 })
	stop()
	stop()
	if out.Len() > 0 {
		t.Errorf("%q was written", out.String())
	}
}
