package discovery

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
)

const (
	crdPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	apiServicePath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// typeServer is an API server with discovery, and lists and watches of CRDs and APIServices. It does not
// support watch-lists, so these tests use lists. Tests with real servers use watch-lists.
type typeServer struct {
	*httptest.Server
	discovery *apiServer
	mu        struct {
		sync.Mutex
		version       int
		objects       map[string]map[string]map[string]any // objects by path and name
		watchers      map[chan watchEvent]string           // their paths
		history       map[string][]watchEvent              // events by path
		failWith      map[string]int                       // status by path
		listCounts    map[string]int                       // number of lists by path
		emptyCRDLists int                                  // number of the next lists of CRDs that are empty
	}
}

type watchEvent struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`

	version int
}

func newTypeServer(t testing.TB, groups ...group) *typeServer {
	t.Helper()
	s := &typeServer{discovery: newAPIServer(t, groups...)}
	s.mu.objects = map[string]map[string]map[string]any{crdPath: {}, apiServicePath: {}}
	s.mu.watchers = map[chan watchEvent]string{}
	s.mu.history = map[string][]watchEvent{}
	s.mu.failWith, s.mu.listCounts = map[string]int{}, map[string]int{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.endWatches()
		s.Close()
	})
	return s
}

// tracker returns a tracker without client-side rate limits.
func (s *typeServer) tracker(t testing.TB, options TrackerOptions) *Tracker {
	t.Helper()
	config := &rest.Config{Host: s.URL, QPS: -1}
	client, err := NewClient(config, Options{interval: 1})
	if err != nil {
		t.Fatal(err)
	}
	options.Client = client
	tracker, err := NewTracker(config, options)
	if err != nil {
		t.Fatal(err)
	}
	return tracker
}

func (s *typeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if path != crdPath && path != apiServicePath {
		s.discovery.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	status := s.mu.failWith[path]
	s.mu.Unlock()
	if r.URL.Query().Get("sendInitialEvents") != "" {
		status = http.StatusUnprocessableEntity
	}
	switch {
	case status != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		reason := map[int]metav1.StatusReason{403: metav1.StatusReasonForbidden,
			422: metav1.StatusReasonInvalid}[status]
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: "Failure", Code: int32(status), Reason: reason})
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	default:
		s.list(w, path)
	}
}

func (s *typeServer) list(w http.ResponseWriter, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.listCounts[path]++
	items := []any{}
	for _, o := range s.mu.objects[path] {
		items = append(items, o)
	}
	if path == crdPath && s.mu.emptyCRDLists > 0 {
		s.mu.emptyCRDLists--
		items = nil
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"kind": "List", "apiVersion": "v1", "items": items,
		"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.mu.version)},
	})
}

// watch sends the events since a version, and later ones.
func (s *typeServer) watch(w http.ResponseWriter, r *http.Request) {
	events := make(chan watchEvent, 1000)
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	for _, e := range s.mu.history[r.URL.Path] {
		if e.version > since {
			events <- e
		}
	}
	s.mu.watchers[events] = r.URL.Path
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e, ok := <-events:
			if !ok {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
			w.(http.Flusher).Flush()
		}
	}
}

// endWatches ends every watch.
func (s *typeServer) endWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.mu.watchers {
		close(c)
		delete(s.mu.watchers, c)
	}
}

// saveState saves the server's objects and version. The returned function restores them, like a restore of
// etcd.
func (s *typeServer) saveState() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version, objects := s.mu.version, map[string]map[string]map[string]any{}
	for path, named := range s.mu.objects {
		objects[path] = maps.Clone(named)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.version, s.mu.objects = version, objects
		clear(s.mu.history)
	}
}

// put stores an object and notifies the watchers; remove deletes it.
func (s *typeServer) put(path string, object map[string]any) { s.change(path, object, "") }
func (s *typeServer) remove(path, name string)               { s.change(path, nil, name) }

func (s *typeServer) change(path string, object map[string]any, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version++
	e := watchEvent{Type: "MODIFIED", Object: object}
	if object == nil {
		last := maps.Clone(s.mu.objects[path][name])
		metadata := maps.Clone(last["metadata"].(map[string]any))
		metadata["resourceVersion"] = strconv.Itoa(s.mu.version)
		last["metadata"] = metadata
		e = watchEvent{Type: "DELETED", Object: last}
		delete(s.mu.objects[path], name)
	} else {
		metadata := object["metadata"].(map[string]any)
		metadata["resourceVersion"] = strconv.Itoa(s.mu.version)
		name = metadata["name"].(string)
		if s.mu.objects[path][name] == nil {
			e.Type = "ADDED"
		}
		s.mu.objects[path][name] = object
	}
	e.version = s.mu.version
	s.mu.history[path] = append(s.mu.history[path], e)
	for c, watched := range s.mu.watchers {
		if watched == path {
			c <- e
		}
	}
}

// crdObjectOf returns d as an API server sends it.
func crdObjectOf(d *crd.Definition) map[string]any {
	status := func(is bool) string { return map[bool]string{true: "True", false: "False"}[is] }
	scope := "Cluster"
	if d.Namespaced {
		scope = "Namespaced"
	}
	versions := []any{}
	for _, v := range d.Versions {
		versions = append(versions, map[string]any{
			"name": v.Name, "served": v.Served, "storage": v.Storage,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		})
	}
	names := map[string]any{"plural": d.Names.Plural, "singular": d.Names.Singular, "kind": d.Names.Kind}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.Name, "uid": string(d.UID)},
		"spec":     map[string]any{"group": d.Group, "names": names, "scope": scope, "versions": versions},
		"status": map[string]any{"acceptedNames": names, "conditions": []any{
			map[string]any{"type": "Established", "status": status(d.Established)},
			map[string]any{"type": "NamesAccepted", "status": status(d.NamesAccepted)},
		}},
	}
}

func apiServiceObject(name, uid string, remote bool) map[string]any {
	spec := map[string]any{"groupPriorityMinimum": 1000}
	if remote {
		spec["service"] = map[string]any{"name": "metrics", "namespace": "kube-system"}
	}
	return map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": name, "uid": uid}, "spec": spec,
	}
}

// eventListener collects events and lets a test wait for one.
type eventListener struct {
	t      testing.TB
	events chan Event
}

func listen(t testing.TB, tracker *Tracker) *eventListener {
	l := &eventListener{t: t, events: make(chan Event, 10000)}
	s := tracker.Subscribe(func(e Event) { l.events <- e })
	t.Cleanup(s.Stop)
	return l
}

// awaitEvent returns the events up to and including the first with the text want.
func (l *eventListener) awaitEvent(want string) []string {
	l.t.Helper()
	timeout, cancel := context.WithTimeout(l.t.Context(), 5*time.Minute)
	defer cancel()
	var got []string
	for {
		select {
		case e := <-l.events:
			text := eventTexts([]Event{e})[0]
			got = append(got, text)
			if text == want {
				return got
			}
		case <-timeout.Done():
			l.t.Fatalf("no %q; got %v", want, got)
		}
	}
}

const syncedText = "Synced "
