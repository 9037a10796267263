package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// TestWatchLosesItsCredentials reports the loss and the recovery of authentication.
func TestWatchLosesItsCredentials(t *testing.T) {
	t.Setenv("KUBECONFIG", "/none")
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	handler := readapi.NewHandler(storage, readapi.HandlerOptions{})
	var revoked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoked.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := gizmoServer{t, storage, server.URL}
	s.define("color")
	s.apply(object("Gizmo", "web", "a", nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, outWriter := io.Pipe()
	errOut, errWriter := io.Pipe()
	code := make(chan int, 1)
	go func() { // ended by cancel
		code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos", "-A", "-o", "name", "-s", server.URL},
			nil, outWriter, errWriter)
		outWriter.Close()
		errWriter.Close()
	}()
	lines, said := bufio.NewReader(out), bufio.NewReader(errOut)
	expect := func(from *bufio.Reader, want string) {
		t.Helper()
		if line, err := from.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
	}
	expect(lines, "gizmo.example.com/a\n")
	revoked.Store(true)
	server.CloseClientConnections()
	expect(said, "warning: the API server rejects the credentials, changes are not shown: ")
	s.apply(object("Gizmo", "web", "b", nil))
	revoked.Store(false)
	expect(said, "the API server accepts the credentials again\n")
	expect(lines, "gizmo.example.com/b\n")
	cancel()
	expect(said, "error: interrupted\n")
	if got := <-code; got != exit.Interrupted {
		t.Errorf("exit code %d", got)
	}
	server.CloseClientConnections()
}
