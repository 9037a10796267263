package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/web/internal/feed"
)

const (
	// beat is how often a stream says that it is alive.
	beat = 5 * time.Second
	// pace is the least time between two batches of changes, and batch how many changes each has at most.
	pace  = 250 * time.Millisecond
	batch = 100
)

// stream is what one browser is told as it happens: a stream of server-sent events.
type stream struct {
	h    *Handler
	w    http.ResponseWriter
	r    *http.Request
	sent map[string]row // the rows that the browser has
	// shown are the types of which something is seen, as of the last look at them, by informer and by view.
	shown  atomic.Pointer[map[*dynamicinformer.Informer]*kept]
	views  map[view]*kept
	all    bool         // everything is seen
	reader *feed.Reader // nil where no changes are asked for
	only   string       // the type whose changes are asked for; empty for all
}

// view is what the status of an informer names it by.
type view struct {
	gvr  schema.GroupVersionResource
	view string
}

// serveStream serves what happens until the browser goes: how types are and, with changes, what changes in objects and what
// becomes of types: of one type, of one key, or where the names have a text.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request) {
	now, over := context.WithCancel(r.Context())
	over() // nobody waits for a page to be closed
	release, ok := h.streams.take(now, h.user(r))
	if !ok {
		fail(w, http.StatusServiceUnavailable, errors.New("too many pages are open"))
		return
	}
	defer release()
	s := &stream{h: h, w: w, r: r, sent: map[string]row{}, only: r.FormValue("type")}
	if r.FormValue("changes") != "" {
		key := r.FormValue("key")
		s.shown.Store(&map[*dynamicinformer.Informer]*kept{})
		s.reader = h.feed.Read(func(informer *dynamicinformer.Informer, k string) bool {
			return (key == "" || k == key) && s.sees(informer, k)
		})
		defer s.reader.Close()
		if key == "" {
			_ = s.reader.Listen(h.source.Factory) // of one that has been shut down there is nothing to hear
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if err := s.run(words(r.FormValue("match"))); err != nil {
		return // the browser has gone, or is too slow
	}
}

// sees reports whether the object of a key is seen, as of the last look at the types.
func (s *stream) sees(informer *dynamicinformer.Informer, key string) bool {
	k := (*s.shown.Load())[informer]
	return k != nil && k.scope.sees(key)
}

// words are what has to be in the names of a change, in any order.
func words(text string) []string { return strings.Fields(strings.ToLower(text)) }

func (s *stream) run(match []string) error {
	alive := time.NewTicker(beat)
	defer alive.Stop()
	var ready <-chan struct{}
	var pause <-chan time.Time
	if s.reader != nil {
		ready = s.reader.Ready()
	}
	fresh, err := s.types()
	for err == nil {
		select {
		case <-fresh:
			fresh, err = s.types()
		case <-ready:
			err = s.changes(match)
			ready, pause = nil, time.After(pace)
		case <-pause:
			ready, pause = s.reader.Ready(), nil
		case <-alive.C:
			err = s.send("beat", struct{}{})
		case <-s.h.closed:
			return s.send("end", struct{}{})
		case <-s.r.Context().Done():
			return s.r.Context().Err()
		}
	}
	return err
}

// typesEvent tells of types: those that differ from what the browser has, and the rates of those that had changes.
type typesEvent struct {
	Title      string      `json:"title"`
	Notice     string      `json:"notice,omitempty"`
	Interval   int64       `json:"interval"` // milliseconds between two points of a rate
	All        bool        `json:"all,omitempty"`
	Rows       []*sampled  `json:"rows,omitempty"`
	Gone       []string    `json:"gone,omitempty"`
	Conditions []condition `json:"conditions"`
}

// types sends what is new about types, and returns what is closed when there is more.
func (s *stream) types() (<-chan struct{}, error) {
	rows, fresh := s.h.figures.now()
	all, err := s.h.seen(s.r)
	if err != nil {
		return fresh, err
	}
	if rows, err = s.h.rowsFor(s.r.Context(), all, rows); err != nil {
		return fresh, err
	}
	event := typesEvent{Title: s.h.source.Title, Notice: s.h.source.Notice, Interval: interval.Milliseconds(), All: len(s.sent) == 0, Conditions: conditionsFor(all, s.h.figures.conditions())}
	now := make(map[string]row, len(rows))
	for _, r := range rows {
		now[r.ID] = r.row
		if old, known := s.sent[r.ID]; !known {
			event.Rows = append(event.Rows, r)
		} else if old != r.row {
			event.Rows = append(event.Rows, &sampled{row: r.row}) // the browser knows the rates before
		}
	}
	for id := range s.sent {
		if _, ok := now[id]; !ok {
			event.Gone = append(event.Gone, id)
		}
	}
	s.sent = now
	s.follow(all)
	return fresh, s.send("types", event)
}

// follow has the reader hear of informers that are new, and of none of which nothing is seen.
func (s *stream) follow(all []*kept) {
	if s.reader == nil {
		return
	}
	shown := map[*dynamicinformer.Informer]*kept{}
	s.views, s.all = map[view]*kept{}, true
	for _, k := range all {
		s.all = s.all && k.scope.All
		if s.only != "" && s.only != k.id || k.scope.empty() || shown[k.informer] != nil {
			continue
		}
		shown[k.informer] = k
		s.views[view{k.informer.GVR(), k.informer.Status().View}] = k
	}
	s.shown.Store(&shown)
	for informer := range shown {
		_ = s.reader.Follow(informer) // of one that has stopped there is nothing to hear
	}
}

// changesEvent tells of changes.
type changesEvent struct {
	Changes []change `json:"changes"`
	// Skipped is how many more there were that came too fast.
	Skipped int `json:"skipped,omitempty"`
}

func (s *stream) changes(match []string) error {
	event := changesEvent{Changes: []change{}}
	s.addStates(&event, match)
	s.addChanges(&event, match)
	if len(event.Changes) == 0 && event.Skipped == 0 {
		return nil
	}
	slices.SortStableFunc(event.Changes, func(a, b change) int { return cmp.Compare(a.Time, b.Time) })
	return s.send("changes", event)
}

// addStates adds what has become of types, as many as there may be of changes besides.
func (s *stream) addStates(event *changesEvent, match []string) {
	taken, skipped := s.reader.TakeStates()
	if s.all {
		event.Skipped += skipped
	}
	added := 0
	for _, state := range taken {
		id, seen := s.idOf(state)
		if !seen || s.only != "" && s.only != id || !fits(strings.ToLower(id+" "+state.Op), match) {
			continue
		}
		if added++; added > batch {
			event.Skipped++
			continue
		}
		if !s.all {
			state.Message = "" // which may name objects
		}
		event.Changes = append(event.Changes, stateChange(id, state))
	}
}

// idOf names the type of a state: one that is no longer kept, or not known yet, by its group, version and resource. Only who
// sees everything sees that.
func (s *stream) idOf(state feed.State) (id string, seen bool) {
	if k := s.views[view{state.GVR, state.View}]; k != nil {
		return k.id, true
	}
	return idOf(state.GVR), s.all
}

func (s *stream) addChanges(event *changesEvent, match []string) {
	taken, skipped := s.reader.Take()
	event.Skipped += skipped
	added := 0
	for _, c := range taken {
		if !s.sees(c.Informer, c.Key) { // any more
			continue
		}
		id := (*s.shown.Load())[c.Informer].id
		if !fits(strings.ToLower(id+" "+c.Key), match) {
			continue
		}
		if added++; added > batch {
			event.Skipped++
			continue
		}
		event.Changes = append(event.Changes, s.h.changeOf(id, c))
	}
}

func fits(text string, match []string) bool {
	for _, word := range match {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// send writes an event, and fails when the browser does not take it in time.
func (s *stream) send(name string, value any) error {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	if err := json.NewEncoder(&b).Encode(value); err != nil { // which ends with a newline, and has no other
		return err
	}
	b.WriteByte('\n')
	control := http.NewResponseController(s.w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTime)) // a recorder in a test has none
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	return control.Flush()
}
