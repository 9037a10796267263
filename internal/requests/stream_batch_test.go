package requests

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// fedFake is a source that is fed.
type fedFake struct {
	*watch.FakeWatcher
	take func([]watch.Event) bool
}

func newFedFake() *fedFake { return &fedFake{FakeWatcher: watch.NewFake()} }

func (f *fedFake) Deliver(take func([]watch.Event) bool) { f.take = take }

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

func small(n int) []watch.Event {
	events := make([]watch.Event, n)
	for i := range events {
		events[i] = watch.Event{Type: watch.Added, Object: sized{object("web", fmt.Sprint(i)), 10}}
	}
	return events
}

// TestStreamOfBatches checks that batches and the events after them come in order, and what is reported of them.
func TestStreamOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFedFake()
		var l listener
		hooks := l.hooks(true)
		hooks.Came = func(initial bool) { l.heard = append(l.heard, fmt.Sprintf("initial=%v", initial)) }
		s := NewStream(source, hooks)
		go func() { // ended by the events
			source.take(added("a", "b"))
			source.take(added("c"))
			source.take(append(added("d"), watch.Event{Type: watch.Bookmark, Object: bookmark("true")}, added("e")[0]))
			source.Add(object("web", "f"))
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
		want := []string{"first", "initial=true", "initial=true", "initial=true", "initial=false", "listed", "initial=false", "Expired", "ended"}
		if diff := cmp.Diff(want, l.heard); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// TestBatchesThatStall checks that batches are news, and that their end is a stall.
func TestBatchesThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFedFake()
		var l listener
		s := NewStream(source, l.hooks(true))
		for range 3 {
			time.Sleep(Patience - 1)
			source.take(added("a"))
		}
		var passed []watch.EventType
		for e := range s.ResultChan() {
			passed = append(passed, e.Type)
		}
		if diff := cmp.Diff([]watch.EventType{watch.Added, watch.Added, watch.Added, watch.Error}, passed); diff != "" || !source.IsStopped() {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"first", "stalled", "ended"}, l.heard); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// TestInitialEventsAreHeld checks when the reader is woken for initial events.
func TestInitialEventsAreHeld(t *testing.T) {
	large := watch.Event{Type: watch.Added, Object: sized{object("web", "large"), holdBytes}}
	tests := map[string]struct {
		initial bool
		take    func(take func([]watch.Event) bool)
		sent    int
	}{
		"a few":     {true, func(take func([]watch.Event) bool) { take(added("a", "b")); take(added("c")) }, 0},
		"many":      {true, func(take func([]watch.Event) bool) { take(small(holdEvents + 2)) }, holdEvents},
		"much":      {true, func(take func([]watch.Event) bool) { take(append(added("a"), large)) }, 2},
		"slow ones": {true, func(take func([]watch.Event) bool) { take(added("a")); time.Sleep(holdTime + 1); take(added("b", "c")) }, 2},
		"their end": {true, func(take func([]watch.Event) bool) {
			take(append(added("a"), watch.Event{Type: watch.Bookmark, Object: bookmark("true")}))
		}, 2},
		"what comes then": {true, func(take func([]watch.Event) bool) {
			take([]watch.Event{{Type: watch.Bookmark, Object: bookmark("true")}})
			take(added("a"))
		}, 2},
		"others": {false, func(take func([]watch.Event) bool) { take(added("a")) }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newFedFake()
				s := NewStream(source, Hooks{Initial: test.initial})
				test.take(source.take)
				if n := len(s.out); n != test.sent {
					t.Errorf("%d events were sent, want %d", n, test.sent)
				}
				s.Stop()
			})
		})
	}
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
				source := newFedFake()
				s := NewStream(source, Hooks{})
				batch := make([]watch.Event, 3*buffered)
				for i := range batch {
					batch[i] = watch.Event{Type: watch.Added, Object: sized{object("web", fmt.Sprint(i)), test.size}}
				}
				go source.take(batch) // ended by Stop
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
		source := newFedFake()
		s := NewStream(source, Hooks{})
		took := make(chan bool)
		go func() { // ended by Stop
			took <- source.take([]watch.Event{
				{Type: watch.Added, Object: sized{object("web", "a"), heldBytes}}, {Type: watch.Added, Object: sized{object("web", "b"), 1}},
			})
		}()
		synctest.Wait()
		if n := len(s.out); n != 1 {
			t.Errorf("%d events wait", n)
		}
		s.Stop()
		if <-took {
			t.Error("the source is to go on")
		}
	})
}
