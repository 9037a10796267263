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

// How many events may wait for the reader, and how many bytes of them: handing over each one by itself, with two
// goroutines taking turns, costs several times what there is to do for it.
const (
	buffered  = 64
	heldBytes = 1 << 20
)

// Batched is a source some of whose events come in batches. Its other events come from ResultChan, as does the end.
type Batched interface {
	watch.Interface
	// Batches returns a channel of batches, each of which is the receiver's until it receives the next.
	Batches() <-chan []watch.Event
}

// Stream passes on the events of a watch, and reports what they say. One goroutine does that; Stop ends it, and
// so does the end of the source.
type Stream struct {
	source  watch.Interface
	batches <-chan []watch.Event // of the source; nil: there are none
	hooks   Hooks
	out     chan watch.Event
	quit    chan struct{} // closed by Stop
	stop    sync.Once

	// What follows is for pass alone.
	live    bool // something has come
	initial bool // there are initial events to come
	waiting window
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
	// Came is called for each event, bookmark, or batch of them, and for the end of the initial events. owing says that
	// there are initial events to come.
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

// New returns a Stream of the events of source, which may be Batched.
func New(source watch.Interface, hooks Hooks) *Stream {
	s := &Stream{
		source: source, hooks: hooks, initial: hooks.Initial,
		out: make(chan watch.Event, buffered), quit: make(chan struct{}),
	}
	if b, ok := source.(Batched); ok {
		s.batches = b.Batches()
	}
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
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	for {
		var stall <-chan time.Time
		if s.initial { // later, silence is normal
			stall = timer.C
		}
		goesOn := true
		select {
		case <-s.quit:
			return
		case <-stall:
			s.stall()
			return
		case batch := <-s.batches:
			goesOn = s.take(batch...)
		case event, ok := <-s.source.ResultChan():
			goesOn = ok && s.take(event)
		}
		if !goesOn {
			return
		}
		if s.initial { // that the reader takes its time is no pause
			timer.Reset(Patience)
		}
	}
}

// stall gives up the source.
func (s *Stream) stall() {
	s.source.Stop()
	call(s.hooks.Stalled)
	s.send(watch.Event{Type: watch.Error, Object: stallStatus()})
}

// take reports and passes on events. It returns false when the stream is stopped.
func (s *Stream) take(events ...watch.Event) bool {
	reported := false // that something came
	for _, event := range events {
		if event.Type == watch.Error {
			if s.hooks.Failed != nil {
				s.hooks.Failed(apierrors.FromObject(event.Object))
			}
		} else {
			if s.initial && endsInitialEvents(event) {
				s.initial, reported = false, false
				call(s.hooks.Listed)
			}
			s.came(!reported)
			reported = true
		}
		if !s.unwanted(event) && !s.send(event) {
			return false
		}
	}
	return true
}

// came reports that something came that is no error, unless that is known.
func (s *Stream) came(news bool) {
	if !s.live {
		s.live = true
		call(s.hooks.First)
	}
	if news && s.hooks.Came != nil {
		s.hooks.Came(s.initial)
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
	size := sizeOf(event.Object)
	if !s.waiting.fits(size, len(s.out)) && !s.makeRoom(size) {
		return false
	}
	select {
	case s.out <- event:
		s.waiting.add(size)
		return true
	case <-s.quit:
		return false
	}
}

// makeRoom waits until the reader has taken enough for an event of some size to wait, too. It has to ask, because a
// channel does not tell; but that many bytes wait only when events are large and the reader is slow.
func (s *Stream) makeRoom(size int) bool {
	ask := time.NewTicker(time.Millisecond)
	defer ask.Stop()
	for !s.waiting.fits(size, len(s.out)) {
		select {
		case <-ask.C:
		case <-s.quit:
			return false
		}
	}
	return true
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
