package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// newTestGate starts a gate before a handler and returns a client for it.
func newTestGate(t *testing.T, handler http.HandlerFunc) (g *eventGate, get func(path string) *bufio.Reader) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeGateConfig(kubeconfig, server.URL); err != nil {
		t.Fatal(err)
	}
	g, err := startGate(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", g.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	return g, func(path string) *bufio.Reader {
		response, err := http.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return bufio.NewReader(response.Body)
	}
}

// TestGateHoldsEvents closes the gate during a watch. No event passes, the server is not blocked, and all
// events arrive after the gate is opened.
func TestGateHoldsEvents(t *testing.T) {
	send := make(chan int)
	done := make(chan struct{})
	g, get := newTestGate(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprintln(w, "a list")
			return
		}
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		for n := range send {
			fmt.Fprintln(w, n)
			w.(http.Flusher).Flush()
		}
		close(done)
	})
	watch := get("/things?watch=true")
	if line, _ := watch.ReadString('\n'); line != "first\n" {
		t.Fatalf("the first event is %q", line)
	}
	g.Hold()
	const events = 100
	for n := range events {
		send <- n
	}
	close(send)
	<-done
	if err := g.Wait(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	if watch.Buffered() > 0 {
		t.Error("something got through")
	}
	if line, _ := get("/things").ReadString('\n'); line != "a list\n" {
		t.Errorf("the list is %q: only watches are held back", line)
	}
	g.Open()
	for n := range events {
		if line, err := watch.ReadString('\n'); err != nil || line != fmt.Sprintln(n) {
			t.Fatalf("event %d is %q, %v", n, line, err)
		}
	}
	if line, err := watch.ReadString('\n'); err == nil {
		t.Errorf("after the end of the watch comes %q", line)
	}
}

// TestWaitEnds waits for more events than there are.
func TestWaitEnds(t *testing.T) {
	g, _ := newTestGate(t, func(http.ResponseWriter, *http.Request) {})
	g.Hold()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := g.Wait(ctx, 1); !errors.Is(err, enough) {
		t.Errorf("the error is %v, want that of the context", err)
	}
}
