package discovery

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fetchRecorder has a fetch function that takes a fixed time and records when it was called.
type fetchRecorder struct {
	mu        sync.Mutex
	starts    []time.Time
	fetchTime time.Duration
	err       error
}

func (r *fetchRecorder) fetch(ctx context.Context, _ *cachedDocument) (*cachedDocument, error) {
	r.mu.Lock()
	r.starts = append(r.starts, time.Now())
	r.mu.Unlock()
	if err := sleep(ctx, r.fetchTime); err != nil {
		return nil, err
	}
	return &cachedDocument{documentGroups: &documentGroups{}}, r.err
}

func TestLastWaiterCancelsTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fetchRecorder{fetchTime: time.Hour}
		s := &documentCache{interval: time.Second, fetch: r.fetch}
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		results := make(chan string, 2)
		wait := func(name string, ctx context.Context) {
			if _, err := s.fetchedSince(ctx, time.Time{}); errors.Is(err, context.Canceled) {
				results <- name
			}
		}
		go wait("first", first)   // ends with its context
		go wait("second", second) // ends with its context
		synctest.Wait()
		cancelFirst()
		if diff := cmp.Diff("first", <-results); diff != "" {
			t.Errorf("the caller whose context ended (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if s.mu.inProgress == nil {
			t.Error("the round was cancelled while the second caller waits")
		}
		cancelSecond()
		<-results
		synctest.Wait()
		if s.mu.inProgress != nil {
			t.Error("the round continues although no caller waits")
		}
	})
}

// TestBurstOfMisses simulates 100 calls a second for ten seconds. Each call must get a document that was
// requested after it, with at most one request round a second.
func TestBurstOfMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fetchRecorder{fetchTime: 100 * time.Millisecond}
		s := &documentCache{interval: time.Second, fetch: r.fetch}
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				called := time.Now()
				got, err := s.fetchedSince(t.Context(), called)
				if err != nil || got.started.Before(called) {
					t.Errorf("called at %v, got the document %v (%v), want one requested later", called, got,
						err)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		for i := 1; i < len(r.starts); i++ {
			if gap := r.starts[i].Sub(r.starts[i-1]); gap < time.Second {
				t.Errorf("round %d began %v after the round before, want at least 1s", i, gap)
			}
		}
		if len(r.starts) < 10 || len(r.starts) > 12 {
			t.Errorf("%d rounds in ten seconds, want 10 to 12", len(r.starts))
		}
	})
}
