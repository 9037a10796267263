package readapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch serves a watch, or a watch-list.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, e *encoder,
	options *internalversion.ListOptions) {
	selected, begin, err := h.prepareWatch(e, options)
	if err != nil {
		writeError(w, r, err)
		return
	}
	lasts := h.watchTimeout(options.TimeoutSeconds)
	f := &follower{
		resource: e.t, encoder: e, selected: selected, bookmarks: options.AllowWatchBookmarks,
		events: &h.events,
		turn:   NewTurn(h.options.Turns), out: w, flush: http.NewResponseController(w),
		ending: h.options.Ending, patience: h.options.WriteTimeout, end: time.Now().Add(lasts),
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(http.StatusOK)
	timeout := time.NewTimer(lasts)
	defer timeout.Stop()
	bookmark := time.NewTicker(h.options.BookmarkInterval)
	defer bookmark.Stop()
	f.run(r, begin, timeout.C, bookmark.C)
}

// prepareWatch finds out what can be wrong with a watch, in the order of a kube-apiserver.
func (h *handler) prepareWatch(e *encoder,
	options *internalversion.ListOptions) (*selection, *beginning, error) {
	if e.shape.kind == table {
		if err := e.tabulate(); err != nil {
			return nil, nil, err
		}
	}
	selected, err := newSelection(e.t, options)
	if err != nil {
		return nil, nil, err
	}
	begin, err := e.t.begin(options)
	if err == nil && e.shape.media != mediaJSON {
		err = errNotAcceptable(mediaJSON + ";stream=watch")
	}
	return selected, begin, err
}

// beginning is where a watch begins: with initial objects or without, and after a version.
type beginning struct {
	version uint64
	objects iter.Seq[Object] // nil: none
	// marked is set for a watch-list, whose initial objects end with a bookmark.
	marked bool
	// failure is told as the first event.
	failure error
}

// begin finds the beginning that the options ask for. The error is for the status of the answer.
func (t *resource) begin(options *internalversion.ListOptions) (*beginning, error) {
	version, err := parseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, errVersion(err)
	}
	initial := version == 0
	if send := options.SendInitialEvents; send != nil {
		initial = *send
		if current := t.collection.ResourceVersion(); *send && version > current {
			return &beginning{failure: errTooNew(version, current)}, nil
		}
	}
	if !initial && version > 0 {
		return &beginning{version: version}, nil
	}
	now := t.collection.Snapshot(0)
	b := &beginning{version: now.ResourceVersion(), marked: initial && options.SendInitialEvents != nil}
	if initial {
		b.objects = now.Range((&selection{namespace: t.namespace}).keys())
	}
	return b, nil
}

// follower writes the events of one watch.
type follower struct {
	resource  *resource
	encoder   *encoder
	selected  *selection
	bookmarks bool
	events    *eventCache
	out       http.ResponseWriter
	flush     *http.ResponseController
	ending    <-chan struct{}
	turn      *Turn
	seen      []sight // of the last turn
	buf       []byte
	patience  time.Duration // for one write
	end       time.Time     // of the watch
}

// run writes events until the client goes, the time is over, the type changes, or the history is lost.
func (f *follower) run(r *http.Request, b *beginning, timeout, tick <-chan time.Time) {
	if b.failure != nil {
		_ = f.fail(b.failure)
		return
	}
	if f.initial(r.Context(), b) != nil {
		return
	}
	b.objects = nil // they are a state that nobody else may need any more
	version, ended := b.version, false
	for {
		changes := f.resource.collection.Since(version)
		if version < changes.Oldest {
			// the last event: whether it arrives or not, the watch ends
			_ = f.fail(errTooOld(version, changes.Oldest))
			return
		}
		if f.tell(r.Context(), changes.List) != nil {
			return
		}
		// A watch may begin after what has happened so far.
		version = max(version, changes.ResourceVersion)
		if ended {
			_ = f.mark(version, nil)
			return
		}
		if f.sent() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changes.Next:
		case <-f.resource.collection.Ended():
			ended = true // once more round, for what came before that
		case <-f.ending:
			ended = true
		case <-timeout:
			ended = true
		case <-tick:
			if f.mark(version, nil) != nil {
				return
			}
		}
	}
}

// initial writes the objects that a watch begins with.
func (f *follower) initial(ctx context.Context, b *beginning) error {
	if b.objects == nil {
		return nil // marked are only those that have some
	}
	if err := f.initialObjects(ctx, b); err != nil {
		return err
	}
	if len(f.buf) > 0 {
		if err := f.write(f.buf); err != nil {
			return err
		}
	}
	if !b.marked {
		return nil
	}
	return f.mark(b.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// initialObjects appends the selected objects, and writes all but the last of them.
func (f *follower) initialObjects(ctx context.Context, b *beginning) error {
	if err := f.turn.Begin(ctx); err != nil {
		return err
	}
	defer f.turn.End()
	var selected []Object
	write := func() error {
		f.turn.End() // the client may read slowly
		for _, o := range selected {
			if err := f.append(o); err != nil {
				return err
			}
		}
		selected = selected[:0]
		return nil
	}
	work := f.selected.work()
	for o := range b.objects {
		if f.selected.matches(o) {
			selected = append(selected, o)
		}
		if !f.turn.Work(work) {
			continue
		}
		if err := write(); err != nil {
			return err
		}
		if err := f.turn.Begin(ctx); err != nil {
			return err
		}
	}
	return write()
}

// initialBatch is how many bytes of initial events are written at once, unless one is larger: each write is a
// trip to the client.
const initialBatch = 32 << 10

// append adds the event of an initial object to the buffer, and writes the buffer before that when it is
// full.
func (f *follower) append(o Object) error {
	before := len(f.buf)
	err := f.encoder.check(o)
	if err == nil {
		var longer []byte
		if longer, err = f.encoder.appendEvent(f.buf, watch.Added, o); err == nil {
			f.buf = longer
		}
	}
	if err == nil && (len(f.buf) <= initialBatch || before == 0) {
		return nil
	}
	if failed := f.write(f.buf[:before]); failed != nil {
		return failed
	}
	f.buf = f.buf[:copy(f.buf, f.buf[before:])]
	if err != nil {
		return f.fail(err)
	}
	return nil
}

// sight is a change as a selection sees it.
type sight struct {
	kind    watch.EventType
	object  Object
	version uint64
}

// tell writes changes as the selection sees them.
func (f *follower) tell(ctx context.Context, changes []Change) error {
	for len(changes) > 0 {
		looked, err := f.see(ctx, changes)
		if err != nil {
			return err
		}
		changes = changes[looked:]
		for _, s := range f.seen {
			if err := f.event(s); err != nil {
				return err
			}
		}
		clear(f.seen) // a quiet watch does not pin its last objects
		f.seen = f.seen[:0]
	}
	return nil
}

// see evaluates the selection in one turn, and returns the number of changes that it has looked at.
func (f *follower) see(ctx context.Context, changes []Change) (looked int, err error) {
	if err := f.turn.Begin(ctx); err != nil {
		return 0, err
	}
	defer f.turn.End()
	work := f.selected.work()
	for _, c := range changes {
		looked++
		if kind, o := c.seenBy(f.selected.matches); kind != "" {
			f.seen = append(f.seen, sight{kind, o, c.ResourceVersion})
		}
		if f.turn.Work(work) {
			break
		}
	}
	return looked, nil
}

// event writes a change.
func (f *follower) event(s sight) error {
	if err := f.encoder.check(s.object); err != nil {
		return f.fail(err)
	}
	line, err := f.events.line(f.encoder, s.kind, s.object, s.version)
	if err != nil {
		return f.fail(err)
	}
	return f.write(line)
}

// mark writes a bookmark, where those are allowed.
func (f *follower) mark(version uint64, annotations map[string]string) error {
	if !f.bookmarks {
		return nil
	}
	o, err := f.encoder.bookmark(version, annotations)
	if err != nil {
		return err
	}
	return f.put(watch.Bookmark, o)
}

// put writes an event about an object.
func (f *follower) put(kind watch.EventType, o Object) error {
	line, err := f.encoder.appendEvent(f.buf[:0], kind, o)
	if err != nil {
		return f.fail(err)
	}
	f.buf = line
	return f.write(line)
}

// write writes an event. A client that does not read it in time is cut off, and has to list again or to go on
// from what it has; none keeps the watch for longer than that may last.
func (f *follower) write(line []byte) error {
	deadline := f.end.Add(lastWrite)
	if f.patience > 0 {
		if patience := time.Now().Add(f.patience); patience.Before(deadline) {
			deadline = patience
		}
	}
	setWriteDeadline(f.out, deadline)
	_, err := f.out.Write(line)
	return err
}

// sent waits until everything that was written is on its way. The deadline of the write is over then: HTTP/2
// would end the stream when it passes, although nothing is being written any more.
func (f *follower) sent() error {
	if err := f.flush.Flush(); err != nil {
		return err
	}
	setWriteDeadline(f.out, f.end.Add(lastWrite))
	return nil
}

// lastWrite is how much time there is for what is written at the end of a watch.
const lastWrite = 5 * time.Second

// fail writes an error as the last event, and returns it.
func (f *follower) fail(err error) error {
	data, marshalErr := json.Marshal(statusOf(err))
	if marshalErr != nil {
		return marshalErr
	}
	f.buf = append(append(append(f.buf[:0], `{"type":"ERROR","object":`...), data...), "}\n"...)
	_ = f.write(f.buf)
	_ = f.flush.Flush()
	return err
}
