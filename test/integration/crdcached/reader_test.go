package crdcached_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

type serverConfigs []*rest.Config

// reader lists and then watches, each time at a random server, until its history has expired.
type reader struct {
	*testing.T
	name    string
	gvr     schema.GroupVersionResource
	clients []dynamic.Interface

	mu struct {
		sync.Mutex
		state      map[string]objectState
		segments   []*listSegment
		violations []string
	}
	segments []*listSegment // as of the last check
}

// listSegment has the events between one list and the next, and the versions from and to of the first and
// last.
type listSegment struct {
	from, to  uint64
	delivered map[uint64]entry
	deleted   map[uint64]entry
}

func newReader(t *testing.T, name string, gvr schema.GroupVersionResource, configs serverConfigs) *reader {
	t.Helper()
	r := &reader{T: t, name: name, gvr: gvr}
	for _, config := range configs {
		client, err := dynamic.NewForConfig(config)
		must(t, err)
		r.clients = append(r.clients, client)
	}
	return r
}

// run reads until the context ends.
func (r *reader) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.list(ctx) {
			pause(ctx)
			continue
		}
		for ctx.Err() == nil {
			canContinue, failed := r.watch(ctx)
			if failed {
				pause(ctx)
			}
			if !canContinue {
				break
			}
		}
	}
}

// pause limits the requests to an unavailable server.
func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

func (r *reader) randomClient() dynamic.ResourceInterface {
	return r.clients[rand.IntN(len(r.clients))].Resource(r.gvr)
}

func (r *reader) list(ctx context.Context) bool {
	version := []string{"", "0"}[rand.IntN(2)]
	list, err := r.randomClient().List(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return false
	}
	state := map[string]objectState{}
	for i := range list.Items {
		state[keyOf(&list.Items[i])] = stateOf(&list.Items[i])
	}
	from := stateOf(
		&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"resourceVersion": list.
			GetResourceVersion()}}}).version
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.state = state
	r.mu.segments = append(r.mu.segments, &listSegment{from: from, to: from, delivered: map[uint64]entry{},
		deleted: map[uint64]entry{}})
	return true
}

// watch receives some events. It reports whether the client can continue at the last version, and whether the
// server failed.
func (r *reader) watch(ctx context.Context) (canContinue, failed bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.mu.Lock()
	at := r.mu.segments[len(r.mu.segments)-1].to
	r.mu.Unlock()
	seconds := int64(1 + rand.IntN(3))
	w, err := r.randomClient().Watch(ctx, metav1.ListOptions{
		ResourceVersion: strconv.FormatUint(at, 10), AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return true, true
	}
	defer w.Stop()
	for range 1 + rand.IntN(40) {
		e, ok := <-w.ResultChan()
		if !ok {
			return true, false
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			return false, false // 410 or another error of the watch
		}
		r.record(e.Type, o)
	}
	return true, false
}

// record stores an event, and a violation if it contradicts the earlier events.
func (r *reader) record(kind watch.EventType, o *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	received, s := stateOf(o), r.mu.segments[len(r.mu.segments)-1]
	event := fmt.Sprintf("%s: %s %s %+v after %d", r.name, kind, keyOf(o), received, s.to)
	if received.version < s.to || received.version == s.to && kind != watch.Bookmark {
		r.mu.violations = append(r.mu.violations, event+": the version has decreased")
	}
	s.to = max(s.to, received.version)
	if kind == watch.Bookmark {
		return
	}
	previous, exists := r.mu.state[keyOf(o)]
	if exists == (kind == watch.Added) || exists && previous.uid != received.uid {
		r.mu.violations = append(r.mu.violations, fmt.Sprintf("%s: the previous state is %+v", event,
			previous))
	}
	if kind == watch.Deleted {
		s.deleted[received.version] = entry{keyOf(o), previous}
		delete(r.mu.state, keyOf(o))
		return
	}
	r.mu.state[keyOf(o)] = received
	s.delivered[received.version] = entry{keyOf(o), received}
}

// compare compares the client's state with the written objects.
func (r *reader) compare(w *writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mu.segments) == 0 {
		return errors.New(r.name + " has no list")
	}
	return w.diff(r.name, r.mu.state)
}

// check compares the client's events with the written changes. Each change during a segment must have exactly
// one event.
func (r *reader) check(w *writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.mu.violations {
		w.Error(line)
	}
	for _, s := range r.mu.segments {
		s.check(w, r.name)
	}
	r.segments = append([]*listSegment(nil), r.mu.segments...)
}

// check compares the events of one segment with the written changes.
func (s *listSegment) check(w *writer, name string) {
	for version, e := range w.log {
		received, ok := s.delivered[version]
		if version > s.from && version <= s.to && (!ok || received != e) {
			w.Errorf("%s, from %d to %d: received %+v, want the written %+v", name, s.from, s.to, received, e)
		}
	}
	for version, received := range s.delivered {
		if w.log[version] != received {
			w.Errorf("%s: received %+v, want the written %+v", name, received, w.log[version])
		}
	}
	unexpected := maps.Clone(s.deleted)
	for _, d := range w.deletions {
		at := uint64(0)
		for version, e := range unexpected {
			if e.uid == d.uid {
				at = version
			}
		}
		delete(unexpected, at)
		switch {
		case at > 0 && (at <= d.after || d.before > 0 && at >= d.before):
			w.Errorf("%s: the deletion %+v was received at version %d, want one between after and before",
				name, d,
				at)
		case at == 0 && s.from <= d.after && d.before > 0 && s.to >= d.before:
			w.Errorf("%s, from %d to %d: the deletion %+v was not received", name, s.from, s.to, d)
		}
	}
	for version, e := range unexpected {
		w.Errorf("%s: received a deletion of %+v at version %d, want none", name, e, version)
	}
}

// countEvents returns the number of received events at the last check.
func (r *reader) countEvents() int {
	n := 0
	for _, s := range r.segments {
		n += len(s.delivered) + len(s.deleted)
	}
	return n
}
