package dynamicinformer

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

// stallTimeout is how long the initial events of a watch-list may pause before it is given up for a list. Some
// proxies drop the bookmark that ends the initial events; the watch would then wait for it forever.
const stallTimeout = 30 * time.Second

// errStalled is what an initial watch-list is answered with after one has stalled: the way through to the server
// is not made for it. The reflector lists instead.
var errStalled = apierrors.NewTimeoutError("the initial events of a watch-list stopped before their end", 0)

// stream passes on the events of a watch, and reports what they say. One goroutine does that; Stop ends it, and
// so does the end of the source.
type stream struct {
	source watch.Interface
	hooks  streamHooks
	out    chan watch.Event
	quit   chan struct{} // closed by Stop
	stop   sync.Once
	live   bool // something has come; for pass alone
}

// streamHooks are what a stream calls, from its goroutine and in order. All may be nil.
type streamHooks struct {
	// initial says that the stream begins with initial events, which must not pause for longer than
	// stallTimeout.
	initial bool
	// keep tells which objects are passed on.
	keep func(runtime.Object) bool
	// first is called for the first event or bookmark.
	first func()
	// came is called for each event and bookmark. owing says that there are initial events to come.
	came func(owing bool)
	// failed is called with what an ERROR event says, before that is passed on.
	failed func(error)
	// listed is called when the initial events are over, before their end is passed on.
	listed func()
	// stalled is called when the initial events have paused for too long.
	stalled func()
	// ended is called last, once.
	ended func()
}

var _ watch.Interface = (*stream)(nil)

func newStream(source watch.Interface, hooks streamHooks) *stream {
	s := &stream{source: source, hooks: hooks, out: make(chan watch.Event), quit: make(chan struct{})}
	go s.pass() // ended by Stop, or by the source's end
	return s
}

// ResultChan implements watch.Interface.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface.
func (s *stream) Stop() {
	s.stop.Do(func() { close(s.quit) })
	s.source.Stop()
}

func (s *stream) pass() {
	defer func() {
		close(s.out)
		call(s.hooks.ended)
	}()
	initial := s.hooks.initial
	var stall <-chan time.Time
	var timer *time.Timer
	if initial {
		timer = time.NewTimer(stallTimeout)
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
			call(s.hooks.stalled)
			s.send(watch.Event{Type: watch.Error, Object: stallStatus()})
			return
		case event, ok := <-s.source.ResultChan():
			if !ok {
				return
			}
			switch {
			case !initial:
			case endsInitialEvents(event):
				initial, stall = false, nil
				call(s.hooks.listed)
			default:
				timer.Reset(stallTimeout)
			}
			s.report(event, initial)
			if !s.unwanted(event) && !s.send(event) {
				return
			}
		}
	}
}

// report tells what came.
func (s *stream) report(event watch.Event, owing bool) {
	if event.Type == watch.Error {
		if s.hooks.failed != nil {
			s.hooks.failed(apierrors.FromObject(event.Object))
		}
		return
	}
	if !s.live {
		s.live = true
		call(s.hooks.first)
	}
	if s.hooks.came != nil {
		s.hooks.came(owing)
	}
}

func call(hook func()) {
	if hook != nil {
		hook()
	}
}

func (s *stream) unwanted(event watch.Event) bool {
	return s.hooks.keep != nil && event.Type != watch.Error && event.Type != watch.Bookmark && !s.hooks.keep(event.Object)
}

// send passes on an event unless the stream is stopped.
func (s *stream) send(event watch.Event) bool {
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
		Message: fmt.Sprintf("the initial events of a watch-list stopped for %v", stallTimeout),
	}
}

func endsInitialEvents(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
