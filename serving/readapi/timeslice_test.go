package readapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// singleSlotScheduler grants one time slice at a time, and counts them.
type singleSlotScheduler struct {
	slot    chan struct{}
	isHeld  bool
	granted int
}

func newSingleSlotScheduler() *singleSlotScheduler {
	return &singleSlotScheduler{slot: make(chan struct{}, 1)}
}

func (s *singleSlotScheduler) Begin(ctx context.Context) (end func(), err error) {
	select {
	case s.slot <- struct{}{}:
		s.isHeld = true
		s.granted++
		return func() { s.isHeld = false; <-s.slot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// sliceCheckingWriter is a response writer that fails the test if the handler writes during a time slice.
type sliceCheckingWriter struct {
	*httptest.ResponseRecorder
	t         *testing.T
	scheduler *singleSlotScheduler
}

func (r *sliceCheckingWriter) Write(data []byte) (int, error) {
	if r.scheduler.isHeld {
		r.t.Error("the handler wrote to the client during a time slice")
	}
	return r.ResponseRecorder.Write(data)
}

// TestTimeSlices verifies that lists and watches evaluate all objects in short time slices, and write between
// them.
func TestTimeSlices(t *testing.T) {
	var excluded []string
	for range 2 * readapi.WorkPerSlice {
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
			apply(t, storage, testkit.WidgetCRD)
			const objects = 4 * readapi.CheckEvery
			for i := range objects {
				apply(t, storage, testkit.Widget("default", "w"+strings.Repeat("x", i), "red"))
			}
			scheduler := newSingleSlotScheduler()
			h := readapi.NewHandler(storage, readapi.HandlerOptions{Scheduler: scheduler})
			w := &sliceCheckingWriter{httptest.NewRecorder(), t, scheduler}
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != http.StatusOK || strings.Count(w.Body.String(), `"kind":"Widget"`) != objects {
				t.Errorf("response = %d %.200s, want all objects", w.Code, w.Body)
			}
			want := objects / readapi.CheckEvery
			if name == "long" {
				want *= 2
			}
			if scheduler.granted < want {
				t.Errorf("%d objects were evaluated in %d time slices, want at least %d", objects,
					scheduler.granted, want)
			}
		})
	}
}
