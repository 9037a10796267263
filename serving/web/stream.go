package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

const (
	keepAliveInterval = 5 * time.Second
	// batchInterval is the minimum time between batches of changes. A batch has at most maxBatch changes.
	batchInterval = 250 * time.Millisecond
	maxBatch      = 100
)

const maxInterests = 16

// stream sends server-sent events to one browser: the status of types, and the changes that its pages show.
type stream struct {
	handler *Handler
	w       http.ResponseWriter
	r       *http.Request
	// sentRows and sentClusters are the latest values that the browser has received.
	sentRows     map[string]row
	sentClusters []clusterChoice
	ready        chan struct{} // receives a value when a reader has changes or states
	interests    []*pageInterest
}

// pageInterest selects the changes that one page of the browser shows.
type pageInterest struct {
	typeID string   // the type; empty for all
	words  []string // words that the names of a change contain, in any order
	reader *feedReader
	// visibleTypes has the visible types at the last update, by informer and by view.
	visibleTypes    atomic.Pointer[map[*dynamicinformer.Informer]*visibleType]
	typesByInformer map[informerID]*visibleType
	matchesAll      bool // the user sees all objects
}

// informerID identifies an informer by its status.
type informerID struct {
	gvr     schema.GroupVersionResource
	options string
}

// serveStream serves events until the browser disconnects. Each value of "ask" is an interest, encoded like a
// query: "type" and "key" select one type and one object, and "match" has words that the names contain. An
// empty interest selects all changes. Change events have the index of the interest.
func (h *Handler) serveStream(w http.ResponseWriter, r *http.Request) {
	endedCtx, cancel := context.WithCancel(r.Context())
	cancel() // fail immediately if no slot is free
	release, ok := h.streams.acquire(endedCtx, h.user(r))
	if !ok {
		writeError(w, http.StatusServiceUnavailable, errors.New("too many pages are open; close some"))
		return
	}
	defer release()
	s := &stream{handler: h, w: w, r: r, sentRows: map[string]row{}, ready: make(chan struct{}, 1)}
	queries := r.URL.Query()["ask"]
	if len(queries) > maxInterests {
		writeError(w, http.StatusBadRequest, fmt.Errorf("%d pages share a stream; the limit is %d",
			len(queries), maxInterests))
		return
	}
	for _, encodedInterest := range queries {
		interest := s.newInterest(encodedInterest)
		defer interest.reader.Close()
		s.interests = append(s.interests, interest)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if err := s.run(); err != nil {
		return // the browser has disconnected, or is too slow
	}
}

func (s *stream) newInterest(encodedInterest string) *pageInterest {
	values, _ := url.ParseQuery(encodedInterest) // malformed values are ignored
	interest := &pageInterest{typeID: values.Get("type"),
		words: strings.Fields(strings.ToLower(values.Get("match")))}
	interest.visibleTypes.Store(&map[*dynamicinformer.Informer]*visibleType{})
	key := values.Get("key")
	interest.reader = s.handler.feed.NewReader(s.ready, func(informer *dynamicinformer.Informer,
		k string) bool {
		return (key == "" || k == key) && interest.wasVisible(informer, k)
	})
	if key == "" {
		_ = interest.reader.Listen(s.handler.source.Factory) // a factory that was shut down sends nothing
	}
	return interest
}

// wasVisible reports whether an object was visible at the last update of the types.
func (i *pageInterest) wasVisible(informer *dynamicinformer.Informer, key string) bool {
	typ := (*i.visibleTypes.Load())[informer]
	return typ != nil && typ.scope.allows(key)
}

func (s *stream) run() error {
	keepAlive := time.NewTicker(keepAliveInterval)
	defer keepAlive.Stop()
	ready := s.ready
	var pause <-chan time.Time
	figuresChanged, err := s.sendTypes()
	for err == nil {
		select {
		case <-figuresChanged:
			figuresChanged, err = s.sendTypes()
		case <-ready:
			err = s.sendChanges()
			ready, pause = nil, time.After(batchInterval)
		case <-pause:
			ready, pause = s.ready, nil
		case <-keepAlive.C:
			err = s.send("beat", struct{}{})
		case <-s.handler.closed:
			return s.send("end", struct{}{})
		case <-s.r.Context().Done():
			return s.r.Context().Err()
		}
	}
	return err
}

// typesEvent has the types that changed since the last event. New types have the changes of earlier buckets.
// The browser computes later buckets from Changed.
type typesEvent struct {
	Title      string          `json:"title"`
	Clusters   []clusterChoice `json:"clusters,omitempty"` // if they changed
	Notice     string          `json:"notice,omitempty"`
	Bucket     int64           `json:"bucket"` // number of the last bucket of changes, for all rows
	All        bool            `json:"all,omitempty"`
	Rows       []*sampledRow   `json:"rows,omitempty"`
	Gone       []string        `json:"gone,omitempty"`
	Conditions []condition     `json:"conditions"`
}

// sendTypes sends the changed types. It returns a channel that is closed when there are newer figures.
func (s *stream) sendTypes() (<-chan struct{}, error) {
	rows, bucket, changed := s.handler.figures.latest()
	types, err := s.handler.scopedTypes(s.r)
	if err != nil {
		return changed, err
	}
	if rows, err = s.handler.rowsFor(s.r.Context(), types, rows); err != nil {
		return changed, err
	}
	event := typesEvent{Title: s.handler.source.Title, Notice: s.handler.source.notice(),
		Bucket: bucket, All: len(s.sentRows) == 0,
		Conditions: conditionsFor(types, s.handler.figures.conditions())}
	if !allVisible(types) {
		event.Notice = "" // errors of a config can quote names and values
	}
	if clusters := s.handler.clusters.choices(types); !slices.Equal(clusters, s.sentClusters) {
		event.Clusters, s.sentClusters = clusters, clusters
	}
	currentRows := make(map[string]row, len(rows))
	for _, r := range rows {
		currentRows[r.ID] = r.row
		if sentRow, isKnown := s.sentRows[r.ID]; !isKnown {
			event.Rows = append(event.Rows, r)
		} else if sentRow != r.row {
			event.Rows = append(event.Rows, &sampledRow{row: r.row}) // the browser has the earlier changes
		}
	}
	for id := range s.sentRows {
		if _, ok := currentRows[id]; !ok {
			event.Gone = append(event.Gone, id)
		}
	}
	s.sentRows = currentRows
	for _, i := range s.interests {
		i.follow(types)
	}
	return changed, s.send("types", event)
}

// follow subscribes the reader to new informers with visible objects.
func (i *pageInterest) follow(types []*visibleType) {
	typesByInformer := map[*dynamicinformer.Informer]*visibleType{}
	i.typesByInformer, i.matchesAll = map[informerID]*visibleType{}, true
	for _, typ := range types {
		i.matchesAll = i.matchesAll && typ.scope.All
		if i.typeID != "" && i.typeID != typ.id || typ.scope.empty() || typesByInformer[typ.informer] != nil {
			continue
		}
		typesByInformer[typ.informer] = typ
		i.typesByInformer[informerID{typ.informer.GVR(), typ.informer.Status().Options}] = typ
	}
	i.visibleTypes.Store(&typesByInformer)
	for informer := range typesByInformer {
		_ = i.reader.Follow(informer) // fails only if the informer has stopped
	}
}

type changesEvent struct {
	InterestIndex int           `json:"ask"`
	Changes       []changeEvent `json:"changes"`
	// Skipped is the number of dropped changes.
	Skipped int `json:"skipped,omitempty"`
}

func (s *stream) sendChanges() error {
	for index, i := range s.interests {
		event := changesEvent{InterestIndex: index, Changes: []changeEvent{}}
		i.addStates(&event)
		i.addChanges(&event, s.handler)
		if len(event.Changes) == 0 && event.Skipped == 0 {
			continue
		}
		slices.SortStableFunc(event.Changes, func(a, b changeEvent) int {
			return cmp.Compare(a.Time,
				b.Time)
		})
		if err := s.send("changes", event); err != nil {
			return err
		}
	}
	return nil
}

// addStates adds changes of types. Their limit is separate from the limit of objects.
func (i *pageInterest) addStates(event *changesEvent) {
	states, skipped := i.reader.states.take()
	if i.matchesAll {
		event.Skipped += skipped
	}
	addedCount := 0
	for _, state := range states {
		id, visible := i.visibleTypeID(state)
		if !visible || i.typeID != "" && i.typeID != id ||
			!containsAll(strings.ToLower(id+" "+state.Op), i.words) {
			continue
		}
		if addedCount++; addedCount > maxBatch {
			event.Skipped++
			continue
		}
		if !i.matchesAll {
			state.Message = "" // it may name objects
		}
		event.Changes = append(event.Changes, newStateChangeEvent(id, state))
	}
}

// visibleTypeID returns the id of the type of a state. A type that is not cached now is visible only to users
// who see all objects.
func (i *pageInterest) visibleTypeID(state stateUpdate) (id string, visible bool) {
	if typ := i.typesByInformer[informerID{state.GVR, state.Options}]; typ != nil {
		return typ.id, true
	}
	return typeID(state.GVR), i.matchesAll
}

func (i *pageInterest) addChanges(event *changesEvent, handler *Handler) {
	changes, skipped := i.reader.changes.take()
	event.Skipped += skipped
	addedCount := 0
	for _, c := range changes {
		if !i.wasVisible(c.Informer, c.Key) { // not visible any more
			continue
		}
		id := (*i.visibleTypes.Load())[c.Informer].id
		if !containsAll(strings.ToLower(id+" "+c.Key), i.words) {
			continue
		}
		if addedCount++; addedCount > maxBatch {
			event.Skipped++
			continue
		}
		event.Changes = append(event.Changes, handler.newChangeEvent(id, c))
	}
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// send writes an event. It fails if the browser does not read it in time.
func (s *stream) send(name string, value any) error {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\ndata: ")
	if err := json.NewEncoder(&b).Encode(value); err != nil { // Encode writes only one newline, at the end
		return err
	}
	b.WriteByte('\n')
	controller := http.NewResponseController(s.w)
	_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout)) // a test recorder has none
	if _, err := s.w.Write(b.Bytes()); err != nil {
		return err
	}
	return controller.Flush()
}
