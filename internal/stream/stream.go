package stream

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Patience is how long the initial events of a watch-list may pause before it is given up for a list. Some
// proxies drop the bookmark that ends the initial events; the watch would then wait for it forever.
const Patience = 30 * time.Second

// buffered is how many events may wait for the reader: handing over each one by itself costs twice the time.
const buffered = 16

// Stream passes on the events of a watch, and reports what they say. One goroutine does that; Stop ends it, and
// so does the end of the source.
type Stream struct {
	source watch.Interface
	hooks  Hooks
	out    chan watch.Event
	quit   chan struct{} // closed by Stop
	stop   sync.Once
	live   bool // something has come; for pass alone
}

// Hooks are what a Stream calls, from its goroutine and in order. All may be nil.
type Hooks struct {
	// Initial says that the stream begins with initial events, which must not pause for longer than
	// Patience.
	Initial bool
	// Keep tells which objects are passed on.
	Keep func(runtime.Object) bool
	// First is called for the first event or bookmark.
	First func()
	// Came is called for each event and bookmark. owing says that there are initial events to come.
	Came func(owing bool)
	// Failed is called with what an ERROR event says, before that is passed on.
	Failed func(error)
	// Listed is called when the initial events are over, before their end is passed on.
	Listed func()
	// Stalled is called when the initial events have paused for too long.
	Stalled func()
	// Ended is called last, once.
	Ended func()
}

var _ watch.Interface = (*Stream)(nil)

// New returns a Stream of the events of source.
func New(source watch.Interface, hooks Hooks) *Stream {
	s := &Stream{source: source, hooks: hooks, out: make(chan watch.Event, buffered), quit: make(chan struct{})}
	go s.pass() // ended by Stop, or by the source's end
	return s
}

// ResultChan implements watch.Interface.
func (s *Stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface.
func (s *Stream) Stop() {
	s.stop.Do(func() { close(s.quit) })
	s.source.Stop()
}

func (s *Stream) pass() {
	defer func() {
		close(s.out)
		call(s.hooks.Ended)
	}()
	initial := s.hooks.Initial
	var stall <-chan time.Time
	var timer *time.Timer
	if initial {
		timer = time.NewTimer(Patience)
		defer timer.Stop()
		stall = timer.C
	}
	for {
		select {
		case <-s.quit:
			return
		case <-stall:
			stall = nil
			s.source.Stop()
			call(s.hooks.Stalled)
			s.send(watch.Event{Type: watch.Error, Object: stallStatus()})
			return
		case event, ok := <-s.source.ResultChan():
			if !ok {
				return
			}
			if initial && endsInitialEvents(event) {
				initial, stall = false, nil
				call(s.hooks.Listed)
			}
			s.report(event, initial)
			if !s.unwanted(event) && !s.send(event) {
				return
			}
			if initial { // that the reader takes its time is no pause
				timer.Reset(Patience)
			}
		}
	}
}

// report tells what came.
func (s *Stream) report(event watch.Event, owing bool) {
	if event.Type == watch.Error {
		if s.hooks.Failed != nil {
			s.hooks.Failed(apierrors.FromObject(event.Object))
		}
		return
	}
	if !s.live {
		s.live = true
		call(s.hooks.First)
	}
	if s.hooks.Came != nil {
		s.hooks.Came(owing)
	}
}

func call(hook func()) {
	if hook != nil {
		hook()
	}
}

func (s *Stream) unwanted(event watch.Event) bool {
	return s.hooks.Keep != nil && event.Type != watch.Error && event.Type != watch.Bookmark && !s.hooks.Keep(event.Object)
}

// send passes on an event unless the stream is stopped.
func (s *Stream) send(event watch.Event) bool {
	select {
	case s.out <- event:
		return true
	case <-s.quit:
		return false
	}
}

// stallStatus makes a reflector fall back to a list.
func stallStatus() *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusGatewayTimeout,
		Message: fmt.Sprintf("the initial events of a watch-list stopped for %v", Patience),
	}
}

func endsInitialEvents(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
