package requests

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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
	buffered  = 128
	heldBytes = 1 << 20
)

// Fed is a source that delivers events in batches, on a goroutine of its own. When it has done so for the last time, the
// remaining events come from ResultChan, which is closed after them, and soon after Stop.
type Fed interface {
	watch.Interface
	// Deliver has take called with one batch after the other, until it returns false.
	Deliver(take func(batch []watch.Event) bool)
}

// Stream passes on the events of a watch, and reports what they say. One goroutine does that, after that of the source if
// it is Fed; Stop ends it, and so does the end of the source.
type Stream struct {
	source watch.Interface
	fed    bool // source is Fed
	hooks  Hooks
	out    chan watch.Event
	quit   chan struct{} // closed by Stop
	stop   sync.Once
	stall  *time.Timer // nil: the source may be silent for any time
	quiet  atomic.Bool // nothing is being passed on, and the timer runs

	// What follows is for the goroutine that passes on events.
	live    bool // something has come
	initial bool // there are initial events to come
	brought bool // something has come after them
	failed  bool // an ERROR event has come
	held    hold
	waiting window
}

// Hooks are what a Stream calls, one at a time and in order. All may be nil.
type Hooks struct {
	// Initial says that the stream begins with initial events, which must not pause for longer than
	// Patience.
	Initial bool
	// Silence is how long the source may bring nothing after its initial events. It is ended then, without an ERROR event.
	// Default: for any time.
	Silence time.Duration
	// Keep tells which objects are passed on.
	Keep func(runtime.Object) bool
	// First is called for the first event or bookmark.
	First func()
	// Came is called for each event, bookmark, or batch of them, and for the end of the initial events. initial says
	// that there are initial events to come.
	Came func(initial bool)
	// Failed is called with what an ERROR event says, before that is passed on. A source that ends before its initial events
	// do is given one.
	Failed func(error)
	// Listed is called when the initial events are over, before their end is passed on and after Came.
	Listed func()
	// Closed is called when the source has ended by itself and without an ERROR event. brought says that something came
	// after the initial events. An ERROR follows if it returns an error: a reflector lists again then.
	Closed func(brought bool) error
	// Silent is called when the source is ended because of Silence.
	Silent func()
	// Stalled is called when the initial events have paused for too long.
	Stalled func()
	// Ended is called last, once.
	Ended func()
}

var _ watch.Interface = (*Stream)(nil)

// NewStream returns a Stream of the events of source, which may be Fed.
func NewStream(source watch.Interface, hooks Hooks) *Stream {
	s := &Stream{
		source: source, hooks: hooks, initial: hooks.Initial,
		out: make(chan watch.Event, buffered), quit: make(chan struct{}),
	}
	if patience := s.patience(); patience > 0 {
		s.stall = time.NewTimer(patience)
		s.quiet.Store(true)
	}
	if fed, ok := source.(Fed); ok {
		s.fed = true
		fed.Deliver(s.take)
	}
	go s.pass() // ended by Stop, or by the source's end
	return s
}

// patience is how long the source may bring nothing at this moment; zero: for any time.
func (s *Stream) patience() time.Duration {
	if s.initial {
		return Patience
	}
	return s.hooks.Silence
}

// ResultChan implements watch.Interface.
func (s *Stream) ResultChan() <-chan watch.Event { return s.out }

// Stop implements watch.Interface.
func (s *Stream) Stop() {
	s.stop.Do(func() { close(s.quit) })
	s.source.Stop()
}

// pass passes on what is not fed, and ends the stream.
func (s *Stream) pass() {
	defer func() {
		close(s.out)
		call(s.hooks.Ended)
	}()
	var stalled <-chan time.Time
	if s.stall != nil {
		defer s.stall.Stop()
		stalled = s.stall.C
	}
	for {
		select {
		case <-s.quit:
			s.awaitFed()
			return
		case <-stalled:
			if s.quiet.Load() { // that the reader takes its time is no pause
				s.giveUp()
				return
			}
		case event, ok := <-s.source.ResultChan():
			if !ok {
				s.sourceEnded()
				return
			}
			if !s.take([]watch.Event{event}) {
				return
			}
		}
	}
}

// sourceEnded reports that the source has ended, unless Stop has ended it. A reflector would ask for the initial events of a
// watch-list again and again if these have no end; after an error it lists.
func (s *Stream) sourceEnded() {
	select {
	case <-s.quit:
		return
	default:
	}
	switch {
	case s.failed:
	case s.initial:
		s.take([]watch.Event{{Type: watch.Error, Object: endedStatus("the watch-list ended before its initial events did")}})
	case s.hooks.Closed != nil:
		if err := s.hooks.Closed(s.brought); err != nil {
			s.held.add(watch.Event{Type: watch.Error, Object: endedStatus(err.Error())})
		}
	}
	s.release()
}

// awaitFed returns when a source that has been stopped delivers no more.
func (s *Stream) awaitFed() {
	if s.fed {
		for range s.source.ResultChan() {
		}
	}
}

// giveUp ends the source, which is silent: initial events have stalled, or a watch has.
func (s *Stream) giveUp() {
	s.source.Stop()
	s.awaitFed()
	if !s.initial {
		call(s.hooks.Silent)
		return
	}
	call(s.hooks.Stalled)
	s.held.add(watch.Event{Type: watch.Error, Object: endedStatus(fmt.Sprintf("the initial events of a watch-list stopped for %v", Patience))})
	s.release()
}

// take reports and passes on events, and returns false when the stream is stopped.
func (s *Stream) take(events []watch.Event) bool {
	s.quiet.Store(false)
	goesOn := s.passOn(events)
	if patience := s.patience(); patience > 0 {
		s.stall.Reset(patience)
		s.quiet.Store(true)
	}
	return goesOn
}

func (s *Stream) passOn(events []watch.Event) bool {
	if len(events) == 0 {
		s.came(true) // what nobody wants is a sign of life, too
	}
	reported := false // that something came
	for _, event := range events {
		if event.Type == watch.Error {
			s.failed = true
			if s.hooks.Failed != nil {
				s.hooks.Failed(apierrors.FromObject(event.Object))
			}
		} else {
			ends := s.initial && endsInitialEvents(event)
			if ends {
				s.initial, reported = false, false
			}
			s.came(!reported)
			reported = true
			if ends {
				call(s.hooks.Listed)
			} else {
				s.brought = !s.initial
			}
		}
		if s.unwanted(event) {
			continue
		}
		s.held.add(event)
		if s.held.due(s.initial) && !s.release() {
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

// release sends what is held, unless the stream is stopped.
func (s *Stream) release() bool {
	events := s.held.events
	s.held = hold{events: events[:0]}
	if !s.initial {
		s.held.events = nil // from now on it is never many
	}
	defer clear(events)
	for _, event := range events {
		if !s.send(event) {
			return false
		}
	}
	return true
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

// endedStatus makes a reflector fall back from a watch or watch-list to a list.
func endedStatus(why string) *metav1.Status {
	return &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusGatewayTimeout, Message: why,
	}
}

// isEnded reports whether an ERROR event may be one of endedStatus.
func isEnded(err error) bool { return apierrors.IsTimeout(err) }

func endsInitialEvents(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
