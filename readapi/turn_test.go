package readapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// oneTurn grants one turn at a time, and counts them.
type oneTurn struct {
	slot chan struct{}
	held bool
	n    int
}

func newOneTurn() *oneTurn { return &oneTurn{slot: make(chan struct{}, 1)} }

// Begin implements Turns.
func (o *oneTurn) Begin(ctx context.Context) (end func(), err error) {
	select {
	case o.slot <- struct{}{}:
		o.held = true
		o.n++
		return func() { o.held = false; <-o.slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// recorder is a response writer that reports writes during a turn.
type recorder struct {
	*httptest.ResponseRecorder
	t     *testing.T
	turns *oneTurn
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(data []byte) (int, error) {
	if r.turns.held {
		r.t.Error("the client is written to during a turn")
	}
	return r.ResponseRecorder.Write(data)
}

// TestTurns: lists and watches evaluate all objects in short turns, and write between them.
func TestTurns(t *testing.T) {
	var excluded []string
	for range 2 * readapi.WorkPerTurn {
		excluded = append(excluded, fmt.Sprint("!x", len(excluded)))
	}
	for name, path := range map[string]string{
		"list":       widgetsPath + "?labelSelector=color=red",
		"watch":      widgetsPath + "?watch=1&timeoutSeconds=1&labelSelector=color=red&resourceVersion=4",
		"watch-list": widgetsPath + "?watch=1&timeoutSeconds=1&labelSelector=color=red",
		"long":       widgetsPath + "?labelSelector=" + strings.Join(excluded, ","),
	} {
		t.Run(name, func(t *testing.T) {
			storage := apiserver.NewStorage(apiserver.StorageOptions{})
			apply(t, storage, widgetCRD)
			const objects = 4 * readapi.CheckEvery
			for i := range objects {
				apply(t, storage, widget("default", "w"+strings.Repeat("x", i), "red"))
			}
			turns := newOneTurn()
			h := readapi.NewHandler(storage, readapi.HandlerOptions{Turns: turns})
			w := &recorder{httptest.NewRecorder(), t, turns}
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != http.StatusOK || strings.Count(w.Body.String(), `"kind":"Widget"`) != objects {
				t.Errorf("got %d %.200s", w.Code, w.Body)
			}
			want := objects / readapi.CheckEvery
			if name == "long" {
				want *= 2
			}
			if turns.n < want {
				t.Errorf("%d objects were evaluated in %d turns, want %d at least", objects, turns.n, want)
			}
		})
	}
}

// TestNoTurn: a request without a turn evaluates nothing, and ends with its context.
func TestNoTurn(t *testing.T) {
	storage := newWidgets(t, apiserver.StorageOptions{})
	turns := newOneTurn()
	h := readapi.NewHandler(storage, readapi.HandlerOptions{Turns: turns})
	end, err := turns.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, path := range []string{widgetsPath, widgetsPath + "?watch=1"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		cancel()
		evaluated := strings.Contains(w.Body.String(), `"kind":"Widget"`)
		if evaluated || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
