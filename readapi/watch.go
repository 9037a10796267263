package readapi

import (
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watch serves a watch, or a watch-list.
func (h *handler) watch(w http.ResponseWriter, r *http.Request, e *encoder, options *internalversion.ListOptions) {
	selected, begin, err := h.prepareWatch(e, options)
	if err != nil {
		writeError(w, r, err)
		return
	}
	f := &follower{
		storage: h.storage, resource: e.t, encoder: e, selected: selected, bookmarks: options.AllowWatchBookmarks,
		out: w, flush: http.NewResponseController(w),
	}
	w.Header().Set("Content-Type", mediaJSON)
	w.WriteHeader(http.StatusOK)
	timeout := time.NewTimer(h.watchTimeout(options.TimeoutSeconds))
	defer timeout.Stop()
	bookmark := time.NewTicker(h.options.BookmarkInterval)
	defer bookmark.Stop()
	f.run(r, begin, timeout.C, bookmark.C)
}

// prepareWatch finds out what can be wrong with a watch, in the order of a kube-apiserver.
func (h *handler) prepareWatch(e *encoder, options *internalversion.ListOptions) (*selection, *beginning, error) {
	if e.shape.kind == table {
		if err := e.tabulate(); err != nil {
			return nil, nil, err
		}
	}
	selected, err := newSelection(*e.t, options)
	if err != nil {
		return nil, nil, err
	}
	begin, err := h.storage.begin(e.t, options)
	if err == nil && e.shape.media != mediaJSON {
		err = errNotAcceptable(mediaJSON + ";stream=watch")
	}
	return selected, begin, err
}

// beginning is where a watch begins: with initial objects or without, and after a version.
type beginning struct {
	version uint64
	objects []*object
	// marked is set for a watch-list, whose initial objects end with a bookmark.
	marked bool
	// failure is told as the first event.
	failure error
}

// begin finds the beginning that the options ask for. The error is for the status of the answer.
func (s *Storage) begin(t *resource, options *internalversion.ListOptions) (*beginning, error) {
	version, err := parseResourceVersion(options.ResourceVersion)
	if err != nil {
		return nil, errVersion(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	initial := version == 0
	if send := options.SendInitialEvents; send != nil {
		initial = *send
		if *send && version > s.mu.version {
			return &beginning{failure: errTooNew(version, s.mu.version)}, nil
		}
	}
	if !initial && version > 0 {
		return &beginning{version: version}, nil
	}
	b := &beginning{version: s.mu.version, marked: initial && options.SendInitialEvents != nil}
	if initial {
		b.objects = within(t.collection.snapshot(), t.namespace)
	}
	return b, nil
}

// since is collection.since under the lock.
func (s *Storage) since(c *collection, version uint64) (changes []change, current uint64, changed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, changed, err = c.since(version)
	return changes, s.mu.version, changed, err
}

// follower writes the events of one watch.
type follower struct {
	storage   *Storage
	resource  *resource
	encoder   *encoder
	selected  *selection
	bookmarks bool
	out       http.ResponseWriter
	flush     *http.ResponseController
	buf       []byte
}

// run writes events until the client goes, the time is over, the type changes, or the history is lost.
func (f *follower) run(r *http.Request, b *beginning, timeout, tick <-chan time.Time) {
	if b.failure != nil {
		_ = f.fail(b.failure)
		return
	}
	if f.initial(b) != nil {
		return
	}
	version, ended := b.version, false
	for {
		changes, current, changed, err := f.storage.since(f.resource.collection, version)
		if err != nil {
			_ = f.fail(err) // the last event: whether it arrives or not, the watch ends
			return
		}
		if f.tell(changes) != nil {
			return
		}
		// A watch may begin after what has happened so far.
		version = max(version, current)
		if ended {
			_ = f.mark(version, nil)
			return
		}
		if f.flush.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-f.resource.ended:
			ended = true // once more round, for what came before that
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
func (f *follower) initial(b *beginning) error {
	for _, o := range b.objects {
		if !f.selected.matches(o) {
			continue
		}
		if err := f.event(watch.Added, o); err != nil {
			return err
		}
	}
	if !b.marked {
		return nil
	}
	return f.mark(b.version, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// tell writes changes as the selection sees them.
func (f *follower) tell(changes []change) error {
	for _, c := range changes {
		kind, o, err := c.seenBy(f.selected.matches)
		if err != nil {
			return f.fail(err)
		}
		if kind == "" {
			continue
		}
		if err := f.event(kind, o); err != nil {
			return err
		}
	}
	return nil
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
	return f.write(watch.Bookmark, o)
}

// event writes an event about an object.
func (f *follower) event(kind watch.EventType, o *object) error {
	if err := f.encoder.check(o); err != nil {
		return f.fail(err)
	}
	return f.write(kind, o)
}

func (f *follower) write(kind watch.EventType, o *object) error {
	buf := append(f.buf[:0], `{"type":"`...)
	buf = append(append(buf, kind...), `","object":`...)
	buf, err := f.encoder.appendObject(buf, o)
	if err != nil {
		return f.fail(err)
	}
	f.buf = append(buf, "}\n"...)
	_, err = f.out.Write(f.buf)
	return err
}

// fail writes an error as the last event, and returns it.
func (f *follower) fail(err error) error {
	data, marshalErr := json.Marshal(statusOf(err))
	if marshalErr != nil {
		return marshalErr
	}
	f.buf = append(append(append(f.buf[:0], `{"type":"ERROR","object":`...), data...), "}\n"...)
	_, _ = f.out.Write(f.buf)
	_ = f.flush.Flush()
	return err
}
