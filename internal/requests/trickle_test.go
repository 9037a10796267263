package requests

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// tricklingProxy is a proxy that sends another initial event every few seconds, forever.
type tricklingProxy struct{}

func (tricklingProxy) RoundTrip(r *http.Request) (*http.Response, error) {
	body, events := io.Pipe()
	go func() { // ended by the end of the request
		for {
			if _, err := io.WriteString(events, `{"type":"ADDED","object":`+jsonGadget+"}\n"); err != nil {
				return
			}
			select {
			case <-time.After(5 * time.Second):
			case <-r.Context().Done():
				events.CloseWithError(r.Context().Err())
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: body, Request: r}, nil
}

// TestTricklingWatchListReleasesItsSlot checks that an endless watch-list keeps running but releases its
// slot, so that other types can be listed.
func TestTricklingWatchListReleasesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, err := NewClient(&rest.Config{Host: "http://server.test", QPS: -1},
			&http.Client{Transport: tricklingProxy{}})
		if err != nil {
			t.Fatal(err)
		}
		server := &Server{Client: own, Limiter: NewListPool(1).NewLimiter(1, time.Now),
			RestoreDetector: NewRestoreDetector()}
		lw := server.ListWatch(Target{GVR: gadgets, Objects: packedObjects,
			Tweak: func(*metav1.ListOptions) {}},
			&reportCounter{}, NewPacer(false, false, NewRetrySignal()), nil)
		initial, events := true, 0
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		defer watching.Wait()
		defer stop()
		watching.Go(func() { // ended by stop
			err := lw.(*listWatch).WatchInline(ctx, &metav1.ListOptions{SendInitialEvents: &initial},
				func(watch.Event) bool {
					events++
					return true
				})
			if err != nil {
				t.Error(err)
			}
		})
		time.Sleep(SlotTimeout - time.Second)
		if held, _, _ := server.Limiter.Load(); held != 1 {
			t.Errorf("%d slots are held, want 1", held)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if held, _, _ := server.Limiter.Load(); held != 0 || events < 10 {
			t.Errorf("%d slots are held after SlotTimeout with %d events received, want 0 slots", held,
				events)
		}
	})
}
