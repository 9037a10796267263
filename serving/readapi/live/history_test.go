package live

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/serving/readapi"
)

// TestRandomHistories writes at random, relists the informer, and recreates the type. Meanwhile a client
// lists and watches alternately at the server and at the cluster, and always continues from its last version.
// It must not lose, repeat or invent events.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newFixture(t, Options{History: 20})
			w := &writer{fixture: s, random: rand.New(rand.NewPCG(seed, 1)), written: map[uint64]string{}}
			r := &reader{fixture: s, random: rand.New(rand.NewPCG(seed, 2))}
			done := make(chan struct{})
			go func() { defer close(done); r.run() }() // ends with the last written object
			for range 150 {
				w.step()
			}
			s.writeEnvironment(lastName, "end")
			select {
			case <-done:
			case <-time.After(5 * time.Minute):
				t.Fatal("timed out waiting for the client to receive the last object")
			}
			w.check(r)
		})
	}
}

const lastName = "zz-last"

// writer writes environments, and records them by resource version.
type writer struct {
	*fixture
	random  *rand.Rand
	written map[uint64]string
}

func (w *writer) step() {
	name := fmt.Sprint("w", w.random.IntN(8))
	switch n := w.random.IntN(100); {
	case n < 70:
		stage := fmt.Sprint("s", w.random.IntN(1000))
		o := w.writeEnvironment(name, stage)
		w.written[parseVersion(o.GetResourceVersion())] = name + " " + stage
	case n < 93:
		err := w.cluster.Client().Resource(environments).Delete(w.Context(), name, deleteOptions)
		if err != nil && !strings.Contains(err.Error(), "not found") {
			w.Error(err)
		}
	case n < 98: // the watch of the informer ends with 410
		if list, err := w.cluster.Client().Resource(environments).List(w.Context(),
			metav1.ListOptions{}); err == nil && len(list.Items) > 0 {
			w.must(w.cluster.Restore(&list.Items[0]))
		}
	default:
		definitions := w.cluster.Client().Resource(crd.GVR)
		definition, err := definitions.Get(w.Context(), "environments."+demoGroup, getOptions)
		w.must(err)
		w.must(definitions.Delete(w.Context(), definition.GetName(), deleteOptions))
		again := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": definition.GetAPIVersion(), "kind": definition.GetKind(),
			"metadata": map[string]any{"name": definition.GetName()}, "spec": definition.Object["spec"],
		}}
		w.must(w.cluster.Load(w.Context(), again))
	}
}

// check compares the events of a client, and its final state, with the writes.
func (w *writer) check(r *reader) {
	for _, s := range r.segments {
		for version, event := range w.written {
			delivered, ok := s.delivered[version]
			if version > s.from && version <= s.to && (!ok || delivered != event) {
				w.Errorf("from %d to %d: the event of version %d is %q, want %q", s.from, s.to, version,
					delivered,
					event)
			}
		}
		for version, event := range s.delivered {
			if w.written[version] != event && !strings.HasPrefix(event, lastName) &&
				strings.HasPrefix(event, "w") {
				w.Errorf("the event %q of version %d was never written", event, version)
			}
		}
	}
	list, err := w.cluster.Client().Resource(environments).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	want := map[string]string{}
	for _, o := range list.Items {
		want[o.GetName()] = o.GetResourceVersion()
	}
	if diff := cmp.Diff(want, r.observed); diff != "" {
		w.Errorf("the client's final state differs from the writes: %s", diff)
	}
}

// listSegment is a list and the watches that continue from it.
type listSegment struct {
	from, to  uint64
	delivered map[uint64]string // names and stages by resource version
}

// reader lists and watches, as a client does.
type reader struct {
	*fixture
	random   *rand.Rand
	observed map[string]string // resource versions by name
	segments []*listSegment
}

type environment struct {
	Code     int
	Metadata struct{ Name, ResourceVersion, Continue string }
	Spec     struct{ Stage string }
}

func (r *reader) run() {
	for r.Context().Err() == nil {
		if !r.list() {
			time.Sleep(time.Millisecond) // the type does not exist, so the client retries
			continue
		}
		for r.watch() {
			if r.observed[lastName] != "" {
				return
			}
		}
		if r.observed[lastName] != "" {
			return
		}
	}
}

// pickServer returns the handler for the next request.
func (r *reader) pickServer() http.Handler {
	if r.random.IntN(4) == 0 {
		return r.cluster
	}
	return r.server
}

func (r *reader) list() bool {
	path := environmentsPath + []string{"", "?resourceVersion=0"}[r.random.IntN(2)]
	w := get(r.T, r.pickServer(), path)
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []environment
	}
	if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &list) != nil {
		return false
	}
	r.observed = map[string]string{}
	for _, o := range list.Items {
		r.observed[o.Metadata.Name] = o.Metadata.ResourceVersion
	}
	at := parseVersion(list.Metadata.ResourceVersion)
	r.segments = append(r.segments, &listSegment{from: at, to: at, delivered: map[uint64]string{}})
	return true
}

// watch watches for some events, and reports whether the client can continue from the last one.
func (r *reader) watch() bool {
	segment := r.segments[len(r.segments)-1]
	path := fmt.Sprintf("%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=%d",
		environmentsPath, segment.to)
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://server"+path, nil)
	if err != nil {
		r.Error(err)
		return false
	}
	answer, err := readapi.NewTransport(r.pickServer()).RoundTrip(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return false
	}
	events := json.NewDecoder(answer.Body)
	for range 1 + r.random.IntN(20) {
		var e struct {
			Type   string
			Object environment
		}
		if events.Decode(&e) != nil {
			return true // the watch ends, and another one continues from the last event
		}
		if e.Type == "ERROR" {
			return false
		}
		r.apply(segment, e.Type, e.Object)
		if r.observed[lastName] != "" {
			return true
		}
	}
	return true
}

func (r *reader) apply(segment *listSegment, kind string, o environment) {
	name, version := o.Metadata.Name, parseVersion(o.Metadata.ResourceVersion)
	previous := r.observed[name]
	if version <= segment.to && kind != "BOOKMARK" || version < segment.to {
		r.Errorf("received %s %s of version %d after version %d", kind, name, version, segment.to)
	}
	segment.to = version
	switch {
	case kind == "BOOKMARK":
		return
	case (kind == "ADDED") != (previous == ""):
		r.Errorf("%s %s of %d, which the client has at %q; it has %v", kind, name, version, previous,
			slices.Sorted(maps.Keys(r.observed)))
	case kind == "DELETED":
		delete(r.observed, name)
		return
	}
	r.observed[name] = o.Metadata.ResourceVersion
	segment.delivered[version] = name + " " + o.Spec.Stage
}
