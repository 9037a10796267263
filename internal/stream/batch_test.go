package stream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// batchedFake is a source that has batches.
type batchedFake struct {
	*watch.FakeWatcher
	batches chan []watch.Event
}

func newBatchedFake() *batchedFake {
	return &batchedFake{FakeWatcher: watch.NewFake(), batches: make(chan []watch.Event)}
}

func (b *batchedFake) Batches() <-chan []watch.Event { return b.batches }

// sized is an object that tells its size.
type sized struct {
	*metav1.PartialObjectMetadata
	size int
}

func (s sized) Len() int { return s.size }

func added(names ...string) (events []watch.Event) {
	for _, name := range names {
		events = append(events, watch.Event{Type: watch.Added, Object: object("web", name)})
	}
	return events
}

// TestStreamOfBatches checks that batches and single events come in order, and what is reported of them.
func TestStreamOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newBatchedFake()
		var l listener
		hooks := l.hooks(true)
		hooks.Came = func(owing bool) { l.heard = append(l.heard, fmt.Sprintf("owing=%v", owing)) }
		s := New(source, hooks)
		go func() { // ended by the events
			source.batches <- added("a", "b")
			source.Add(object("web", "c"))
			source.batches <- append(added("d"), watch.Event{Type: watch.Bookmark, Object: bookmark("true")}, added("e")[0])
			source.batches <- added("f")
			source.Error(&metav1.Status{Reason: metav1.StatusReasonExpired, Code: 410})
			source.Stop()
		}()
		var names []string
		for e := range s.ResultChan() {
			if o, ok := e.Object.(*metav1.PartialObjectMetadata); ok {
				names = append(names, o.Name)
			}
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "b", "c", "d", "", "e", "f"}, names); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		want := []string{"first", "owing=true", "owing=true", "owing=true", "listed", "owing=false", "owing=false", "Expired", "ended"}
		if diff := cmp.Diff(want, l.heard); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// TestBatchesThatStall checks that batches are news, and that their end is a stall.
func TestBatchesThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newBatchedFake()
		var l listener
		s := New(source, l.hooks(true))
		for range 3 {
			time.Sleep(Patience - 1)
			source.batches <- added("a")
			if e := <-s.ResultChan(); e.Type != watch.Added {
				t.Errorf("the stream brings %v", e)
			}
		}
		time.Sleep(Patience + 1)
		if e := <-s.ResultChan(); e.Type != watch.Error || !source.IsStopped() {
			t.Errorf("after a pause the stream brings %v", e)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"first", "stalled", "ended"}, l.heard); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// TestFewLargeEventsWait checks that what waits for the reader is bounded by its size, and that it all comes.
func TestFewLargeEventsWait(t *testing.T) {
	for name, test := range map[string]struct{ size, wait int }{
		"small":           {10, buffered},
		"large":           {heldBytes / 4, 4},
		"larger than all": {heldBytes + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newBatchedFake()
				s := New(source, Hooks{})
				batch := make([]watch.Event, 3*buffered)
				for i := range batch {
					batch[i] = watch.Event{Type: watch.Added, Object: sized{object("web", fmt.Sprint(i)), test.size}}
				}
				source.batches <- batch
				for i := range batch {
					time.Sleep(time.Second)
					synctest.Wait()
					if n, most := len(s.out), min(test.wait, len(batch)-i); n != most {
						t.Fatalf("after %d events, %d wait; want %d", i, n, most)
					}
					if e := <-s.ResultChan(); e.Object.(sized).Name != fmt.Sprint(i) {
						t.Fatalf("event %d is %v", i, e)
					}
				}
				s.Stop()
				for range s.ResultChan() {
				}
			})
		})
	}
}

// TestStopWhileLargeEventsWait checks that the stream does not wait for a reader that has gone.
func TestStopWhileLargeEventsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when the goroutine stays
		source := newBatchedFake()
		s := New(source, Hooks{})
		source.batches <- []watch.Event{
			{Type: watch.Added, Object: sized{object("web", "a"), heldBytes}}, {Type: watch.Added, Object: sized{object("web", "b"), 1}},
		}
		synctest.Wait()
		if n := len(s.out); n != 1 {
			t.Errorf("%d events wait", n)
		}
		s.Stop()
	})
}
