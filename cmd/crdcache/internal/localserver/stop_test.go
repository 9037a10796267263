//go:build unix

package localserver

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

// TestStop verifies that Stop returns after the server has released everything, so that another one can
// start.
func TestStop(t *testing.T) {
	shortDir(t)
	config := &rest.Config{Host: "https://a"}
	id, _, err := Identity(t.Context(), config)
	must(t, err)
	var ended atomic.Bool
	ending, release := make(chan struct{}), make(chan struct{})
	options := Options{
		Dir: SocketDirFor(id), Info: func() Info {
			return Info{Identity: id, PID: 7}
		}, Handler: http.NotFoundHandler(),
		OnStopped: func() {
			close(ending)
			<-release
			ended.Store(true)
		},
	}
	start := func(options Options) (client *Client, done <-chan error) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		listening, result := make(chan struct{}), make(chan error, 1)
		// ends with Stop or cancel
		go func() { result <- Serve(ctx, options, func() { close(listening) }) }()
		select {
		case <-listening:
		case err := <-result:
			t.Fatal(err)
		}
		if client, err = NewClient(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		return client, result
	}
	client, done := start(options)
	stopCtx, cancel := context.WithCancel(t.Context())
	go func() { // ends with cancel
		<-ending
		cancel()
	}()
	if info, err := client.Stop(stopCtx); err == nil {
		t.Errorf("a cancelled Stop() = %+v, %v, want an error", info, err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}

	ended.Store(false)
	options.OnStopped = func() { ended.Store(true) }
	client, done = start(options)
	if info, err := client.Stop(t.Context()); err != nil || info.PID != 7 || !ended.Load() {
		t.Errorf("Stop() = %+v, %v; OnStopped was called: %v, want true", info, err, ended.Load())
	}
	options.OnStopped = nil
	next, again := start(options) // starts before the test waits for the first server
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := next.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-again; err != nil {
		t.Error(err)
	}
}
