package crdcached_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// informerChecker is an event handler of a client-go informer that records its events.
type informerChecker struct {
	name string
	mu   struct {
		sync.Mutex
		state      map[string]objectState
		delivered  []entry
		violations []string
	}
}

// startFollowers starts informers. Some use only the victim, and some alternate between both servers.
func startFollowers(t *testing.T, gvr schema.GroupVersionResource, victim, other server) []*informerChecker {
	t.Helper()
	var all []*informerChecker
	for name, config := range map[string]*rest.Config{"the victim": victim.config(),
		"both": alternatingConfig(t, victim.config(), other.config()), "the cluster and the victim": alternatingConfig(t,
			victim.config(), harness.Config(t))} {
		for form, follow := range map[string]func(*testing.T, *rest.Config,
			schema.GroupVersionResource) cache.SharedIndexInformer{
			"dynamic": newDynamicInformer, "metadata": newMetadataInformer,
		} {
			f := &informerChecker{name: form + " by " + name}
			f.mu.state = map[string]objectState{}
			informer := follow(t, config, gvr)
			if _, err := informer.AddEventHandler(f); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { defer close(ended); informer.RunWithContext(ctx) }() // ended by cancel
			t.Cleanup(func() { cancel(); <-ended })
			all = append(all, f)
		}
	}
	return all
}

// alternatingConfig returns a configuration that alternates between two servers.
func alternatingConfig(t *testing.T, config, others *rest.Config) *rest.Config {
	t.Helper()
	next, err := rest.TransportFor(others)
	if err != nil {
		t.Fatal(err)
	}
	address, _, err := rest.DefaultServerUrlFor(others)
	if err != nil {
		t.Fatal(err)
	}
	var count atomic.Int64
	config.Wrap(func(first http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if count.Add(1)%2 == 0 {
				return first.RoundTrip(r)
			}
			r = r.Clone(r.Context())
			r.URL.Scheme, r.URL.Host, r.Host = address.Scheme, address.Host, ""
			r.Header.Del("Authorization") // the header is for the first server
			return next.RoundTrip(r)
		})
	})
	return config
}

func (f *informerChecker) OnAdd(obj any, _ bool) { f.record("add", obj.(metav1.Object)) }

func (f *informerChecker) OnUpdate(_, obj any) { f.record("update", obj.(metav1.Object)) }

func (f *informerChecker) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = lost.Obj
	}
	f.record("delete", obj.(metav1.Object))
}

// record stores an event, and a violation if it contradicts the earlier events.
func (f *informerChecker) record(verb string, o metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, received := keyOf(o), stateOf(o)
	previous, exists := f.mu.state[key]
	// After a list, an informer can report a replaced object as an update. Versions must never decrease.
	if exists == (verb == "add") || received.version < previous.version {
		f.mu.violations = append(f.mu.violations, fmt.Sprintf("%s: %s %s %+v, but the previous state is %+v",
			f.name, verb, key, received, previous))
	}
	if verb == "delete" {
		delete(f.mu.state, key)
		return
	}
	f.mu.state[key] = received
	f.mu.delivered = append(f.mu.delivered, entry{key, received})
}

// compare compares the state according to the events with the written objects.
func (f *informerChecker) compare(w *writer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return w.diff(f.name, maps.Clone(f.mu.state))
}

// check fails the test if events contradict each other, or have a state that was never written.
func (f *informerChecker) check(t *testing.T, w *writer) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.mu.violations {
		t.Error(line)
	}
	for _, e := range f.mu.delivered {
		if w.log[e.version] != e {
		}
	}
}
