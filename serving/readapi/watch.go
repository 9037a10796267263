package readapi

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func (h *handler) watch(w http.ResponseWriter, r *http.Request, e *encoder, options *listOptions) {
	sel, start, err := h.prepareWatch(e, options)
	if err != nil {
		WriteError(w, r, err)
		return
	}
	duration := h.watchTimeout(options.TimeoutSeconds)
	clientWatch := &watcher{
		resource: e.resource, encoder: e, filter: sel, allowsBookmarks: options.AllowWatchBookmarks,
		eventCache: &h.events,
		timeSlice:  NewTimeSlice(h.options.Scheduler), out: w, flush: http.NewResponseController(w),
		stopWatches: h.options.StopWatches, writeTimeout: h.options.WriteTimeout,
		endTime: time.Now().Add(duration),
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(http.StatusOK)
	timeout := time.NewTimer(duration)
	defer timeout.Stop()
	bookmark := time.NewTicker(h.options.BookmarkInterval)
	defer bookmark.Stop()
	clientWatch.run(r, start, timeout.C, bookmark.C)
}

// prepareWatch validates a watch in the order of a kube-apiserver.
func (h *handler) prepareWatch(e *encoder, options *listOptions) (*selection, *watchStart, error) {
	if e.form.kind == tableForm {
		if err := e.initTable(); err != nil {
			return nil, nil, err
		}
	}
	selected, err := newSelection(e.resource, options)
	if err != nil {
		return nil, nil, err
	}
	begin, err := e.resource.watchStart(options)
	if err == nil && e.form.mediaType != mediaJSON {
		err = errNotAcceptable(mediaJSON + ";stream=watch")
	}
	return selected, begin, err
}

// watchStart is the state from which a watch starts.
type watchStart struct {
	version uint64
	objects iter.Seq[Object] // nil if the watch starts without objects
	// endsWithBookmark is set for a watch-list: a bookmark follows the initial objects.
	endsWithBookmark bool
	// failure is sent as the first event.
	failure error
}

// watchStart returns the start of a watch. An error is answered with its status.
func (r *resource) watchStart(options *listOptions) (*watchStart, error) {
	version, err := parseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, errInvalidVersion(err)
	}
	sendsInitial := version == 0
	if send := options.SendInitialEvents; send != nil {
		sendsInitial = *send
		if current := r.collection.ResourceVersion(); *send && version > current {
			return &watchStart{failure: NewResourceVersionTooLargeError(version, current)}, nil
		}
	}
	if !sendsInitial && version > 0 {
		return &watchStart{version: version}, nil
	}
	now := r.collection.Snapshot(0)
	start := &watchStart{version: now.ResourceVersion(), endsWithBookmark: sendsInitial &&
		options.SendInitialEvents != nil}
	if sendsInitial {
		start.objects = now.Range((&selection{namespace: r.namespace}).keyRange())
	}
	return start, nil
}

type watcher struct {
	resource        *resource
	encoder         *encoder
	filter          *selection
	allowsBookmarks bool
	eventCache      *eventCache
	out             http.ResponseWriter
	flush           *http.ResponseController
	stopWatches     <-chan struct{}
	timeSlice       *TimeSlice
	pendingEvents   []selectedEvent // of the latest time slice
	buf             []byte
	writeTimeout    time.Duration // for one write; not positive means no limit
	endTime         time.Time     // of the watch
}

// run writes events until the client disconnects, the watch times out, the type changes, or the history is
// lost.
func (w *watcher) run(r *http.Request, start *watchStart, timeout, tick <-chan time.Time) {
	if start.failure != nil {
		_ = w.sendError(start.failure)
		return
	}
	if w.sendInitial(r.Context(), start) != nil {
		return
	}
	start.objects = nil // release the state
	version, hasEnded := start.version, false
	for {
		changes := w.resource.collection.Since(version)
		if version < changes.Oldest {
			// the watch ends even if this event cannot be written
			_ = w.sendError(errTooOld(version, changes.Oldest))
			return
		}
		if w.sendChanges(r.Context(), changes.List) != nil {
			return
		}
		// The watch can start at a later version than this change.
		version = max(version, changes.ResourceVersion)
		if hasEnded {
			_ = w.sendBookmark(version, nil)
			return
		}
		if w.flushResponse() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changes.Next:
		case <-w.resource.collection.Ended():
			hasEnded = true // send the preceding changes first
		case <-w.stopWatches:
			hasEnded = true
		case <-timeout:
			hasEnded = true
		case <-tick:
			if w.sendBookmark(version, nil) != nil {
				return
			}
		}
	}
}

// sendInitial sends the objects with which a watch begins.
func (w *watcher) sendInitial(ctx context.Context, start *watchStart) error {
	if start.objects == nil {
		return nil // only starts with objects end with a bookmark
	}
	if err := w.appendInitial(ctx, start); err != nil {
		return err
	}
	if len(w.buf) > 0 {
		if err := w.write(w.buf); err != nil {
			return err
		}
	}
	if !start.endsWithBookmark {
		return nil
	}
	return w.sendBookmark(start.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// appendInitial appends the selected objects to the buffer, and sends the buffer whenever it is full.
func (w *watcher) appendInitial(ctx context.Context, start *watchStart) error {
	if err := w.timeSlice.Begin(ctx); err != nil {
		return err
	}
	defer w.timeSlice.End()
	var selected []Object
	write := func() error {
		w.timeSlice.End() // do not hold the time slice while the client reads
		for _, o := range selected {
			if err := w.appendSelected(o); err != nil {
				return err
			}
		}
		selected = selected[:0]
		return nil
	}
	work := w.filter.cost()
	for o := range start.objects {
		if w.filter.matches(o) {
			selected = append(selected, o)
		}
		if w.filter.filterErr != nil {
			w.timeSlice.End()
			return w.sendError(w.filter.filterErr)
		}
		if !w.timeSlice.Spend(work) {
			continue
		}
		if err := write(); err != nil {
			return err
		}
		if err := w.timeSlice.Begin(ctx); err != nil {
			return err
		}
	}
	return write()
}

const initialBatch = 32 << 10

// appendSelected appends the event of an initial object to the buffer. It sends the buffer first if it is
// full.
func (w *watcher) appendSelected(o Object) error {
	before := len(w.buf)
	err := w.encoder.checkConversion(o)
	if err == nil {
		var extended []byte
		if extended, err = w.encoder.appendEvent(w.buf, watch.Added, o); err == nil {
			w.buf = extended
		}
	}
	if err == nil && (len(w.buf) <= initialBatch || before == 0) {
		return nil
	}
	if writeErr := w.write(w.buf[:before]); writeErr != nil {
		return writeErr
	}
	w.buf = w.buf[:copy(w.buf, w.buf[before:])]
	if err != nil {
		return w.sendError(err)
	}
	return nil
}

// selectedEvent is a change from the viewpoint of a selector.
type selectedEvent struct {
	kind    watch.EventType
	object  Object
	version uint64
}

// event returns the change from the viewpoint of a selector: an object that no longer matches is deleted, one
// that now matches is added. The type is empty if neither the old nor the new object matches. A deleted
// object has its last state, with the version of that state.
func (c Change) event(matches func(Object) bool) (watch.EventType, Object) {
	matchedBefore := c.Before != nil && matches(c.Before)
	matchesNow := c.After != nil && matches(c.After)
	switch {
	case matchesNow && matchedBefore:
		return watch.Modified, c.After
	case matchesNow:
		return watch.Added, c.After
	case matchedBefore:
		return watch.Deleted, c.Before
	}
	return "", nil
}

func (w *watcher) sendChanges(ctx context.Context, changes []Change) error {
	for len(changes) > 0 {
		evaluated, err := w.selectChanges(ctx, changes)
		if err != nil {
			return err
		}
		if w.filter.filterErr != nil {
			return w.sendError(w.filter.filterErr)
		}
		changes = changes[evaluated:]
		for _, s := range w.pendingEvents {
			if err := w.sendChange(s); err != nil {
				return err
			}
		}
		clear(w.pendingEvents) // do not pin the objects while the watch is idle
		w.pendingEvents = w.pendingEvents[:0]
	}
	return nil
}

// selectChanges evaluates changes for one time slice, and returns their number.
func (w *watcher) selectChanges(ctx context.Context, changes []Change) (evaluated int, err error) {
	if err := w.timeSlice.Begin(ctx); err != nil {
		return 0, err
	}
	defer w.timeSlice.End()
	work := w.filter.cost()
	for _, c := range changes {
		evaluated++
		if kind, o := c.event(w.filter.matches); kind != "" {
			w.pendingEvents = append(w.pendingEvents, selectedEvent{kind, o, c.ResourceVersion})
		}
		if w.timeSlice.Spend(work) {
			break
		}
	}
	return evaluated, nil
}

func (w *watcher) sendChange(s selectedEvent) error {
	if err := w.encoder.checkConversion(s.object); err != nil {
		return w.sendError(err)
	}
	line, err := w.eventCache.line(w.encoder, s.kind, s.object, s.version)
	if err != nil {
		return w.sendError(err)
	}
	return w.write(line)
}

// sendBookmark sends a bookmark if the client allows it.
func (w *watcher) sendBookmark(version uint64, annotations map[string]string) error {
	if !w.allowsBookmarks {
		return nil
	}
	o, err := w.encoder.bookmark(version, annotations)
	if err != nil {
		return err
	}
	return w.send(watch.Bookmark, o)
}

func (w *watcher) send(kind watch.EventType, o Object) error {
	line, err := w.encoder.appendEvent(w.buf[:0], kind, o)
	if err != nil {
		return w.sendError(err)
	}
	w.buf = line
	return w.write(line)
}

// write writes an event. If the client does not read it in time, the answer is cut.
func (w *watcher) write(line []byte) error {
	deadline := w.endTime.Add(errorWriteTimeout)
	if w.writeTimeout > 0 {
		if limit := time.Now().Add(w.writeTimeout); limit.Before(deadline) {
			deadline = limit
		}
	}
	setWriteDeadline(w.out, deadline)
	_, err := w.out.Write(line)
	return err
}

// flushResponse flushes the answer and resets the write deadline: HTTP/2 closes a stream when its deadline
// passes, even if nothing is being written.
func (w *watcher) flushResponse() error {
	if err := w.flush.Flush(); err != nil {
		return err
	}
	setWriteDeadline(w.out, w.endTime.Add(errorWriteTimeout))
	return nil
}

// errorWriteTimeout limits the time for writing the last event of a watch.
const errorWriteTimeout = 5 * time.Second

// sendError sends an error as the last event, and returns it.
func (w *watcher) sendError(err error) error {
	data, marshalErr := json.Marshal(statusOf(err))
	if marshalErr != nil {
		return marshalErr
	}
	w.buf = append(append(append(w.buf[:0], `{"type":"ERROR","object":`...), data...), "}\n"...)
	_ = w.write(w.buf)
	_ = w.flush.Flush()
	return err
}
