package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// expectRequests verifies the requests for widgets since the last call, as "verb labels fields".
func expectRequests(t *testing.T, server *apitest.Server, seen *int, want ...string) {
	t.Helper()
	synctest.Wait()
	var got []string
	for _, line := range server.Requests()[*seen:] {
		verb, target, _ := strings.Cut(line, " ")
		request, err := http.NewRequest(http.MethodGet, target, nil)
		must(t, err)
		query := request.URL.Query()
		if query.Get("sendInitialEvents") != "" {
			verb = "watch-list"
		} else if query.Get("watch") != "" {
			verb = "watch"
		}
		got = append(got, strings.TrimSpace(verb+" "+query.Get("labelSelector")+" "+query.Get("fieldSelector")))
	}
	*seen = len(server.Requests())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestSelectorsListOnlyTheNewPart verifies that an added selector causes one list of its objects, and a
// removed one no list, in each storage mode. Objects are cached once, and handlers receive each change once.
func TestSelectorsListOnlyTheNewPart(t *testing.T) {
	for name, options := range map[string]ResourceOptions{
		"packed": {}, "objects": {Storage: Storage{Mode: StorageObject}},
		"metadata": {Storage: Storage{Mode: StorageMetadata}}, "namespace": {Namespaces: InNamespaces("ns")},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, labelledWidget("x", "team", "a"), labelledWidget("y", "team", "b"),
					labelledWidget("both", "team", "a", "red", "1"), labelledWidget("red", "red", "1"), labelledWidget("named"))
				f := newVirtualFactory(t, server, Options{})
				a, b := newSelector(t, "team=a", ""), newSelector(t, "team in (b)", "")
				red, named := newSelector(t, "red", ""), newSelector(t, "", "metadata.name=named")
				options.Selectors = NewSelectors(a)
				start(t, f)
				i := acquireSynced(t, f, options)[0]
				e, _ := recordAll(t, []*Informer{i})
				expectEvents(t, "start", e, "add ns/both", "add ns/x")
				seen := len(server.Requests())
				add := func(selectors ...Selector) {
					t.Helper()
					if err := options.Selectors.Add(selectors...); err != nil {
						t.Error(err)
					}
					if err := i.WaitForSelectors(t.Context()); err != nil {
						t.Error(err)
					}
					if n := i.Status().UnlistedSelectors; n != 0 {
						t.Errorf("%d selectors are not listed after WaitForSelectors", n)
					}
				}
				add(b, a)
				expectEvents(t, "merged with another value", e, "add ns/y")
				expectRequests(t, server, &seen, "list team in (b)", "watch team in (a,b)")
				add(a, b, Selector{Label: labels.Nothing()})
				expectRequests(t, server, &seen)
				add(red)
				expectEvents(t, "overlapping", e, "add ns/red")
				expectRequests(t, server, &seen, "list red", "watch")
				add(named)
				expectRequests(t, server, &seen, "list  metadata.name=named", "watch")
				expectEvents(t, "by name", e, "add ns/named")
				options.Selectors.Remove(a, newSelector(t, "never", ""))
				if keys := keysOf(i); !slices.Equal(keys, []string{"ns/both", "ns/named", "ns/red", "ns/y"}) {
					t.Errorf("after Remove the cache has %v", keys)
				}
				expectEvents(t, "removed", e, "gone ns/x")
				server.Update(t, widgets, labelledWidget("x", "team", "a", "n", "2"), labelledWidget("both", "team", "a"))
				expectEvents(t, "events of the removed part", e, "delete ns/both")
				expectRequests(t, server, &seen, "get", "update", "get", "update")
				add(a)
				expectEvents(t, "added again", e, "add ns/both", "add ns/x")
				expectRequests(t, server, &seen, "list team=a", "watch")
				options.Selectors.Remove(a, b, red, named)
				expectEvents(t, "empty", e, "gone ns/both", "gone ns/named", "gone ns/red", "gone ns/x", "gone ns/y")
				if len(keysOf(i)) != 0 || !i.HasSynced() {
					t.Errorf("without selectors the cache has %v and HasSynced() = %t", keysOf(i), i.HasSynced())
				}
				add(b)
				expectEvents(t, "first again", e, "add ns/y")
				expectRequests(t, server, &seen, "watch-list team in (b)", "watch team in (b)")
			})
		})
	}
}

// TestSelectorsBeforeAndAfterTheRun verifies that the set can change before and after the informer runs, and
// while its first list or its type is missing.
func TestSelectorsBeforeAndAfterTheRun(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, labelledWidget("x", "team", "a"), labelledWidget("y", "team", "b"))
		f := newVirtualFactory(t, server, Options{})
		set := NewSelectors()
		change := func(s Selector) {
			t.Helper()
			if err := set.Add(s); err != nil {
				t.Error(err)
			}
		}
		h, err := f.Acquire(widgets, ResourceOptions{Selectors: set})
		must(t, err)
		change(newSelector(t, "team=a", ""))
		server.AddFaults(fault(widgetsPath, "", http.StatusServiceUnavailable))
		ctx, cancel := context.WithCancel(t.Context())
		must(t, f.Start(ctx))
		time.Sleep(time.Second)
		change(newSelector(t, "team=b", ""))
		i := h.Informer()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		if err := i.WaitForSelectors(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitForSelectors without a list = %v", err)
		}
		stop()
		server.Repair()
		if err := i.WaitForSelectors(t.Context()); err != nil || len(keysOf(i)) != 2 {
			t.Errorf("WaitForSelectors = %v, and the cache has %v", err, keysOf(i))
		}
		cancel()
		<-i.Stopped()
		change(newSelector(t, "red", ""))
		set.Remove(newSelector(t, "team=a", ""))
		if err := i.WaitForSelectors(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("WaitForSelectors after the stop = %v", err)
		}
	})
}

// TestSelectorsAreRefused verifies that each combination that would give wrong answers is refused.
func TestSelectorsAreRefused(t *testing.T) {
	set, unknown := NewSelectors(newSelector(t, "a", "")), newSelector(t, "", "spec.x=y")
	for want, options := range map[string]ResourceOptions{
		"AnyOf":              {Selectors: set, AnyOf: []Selector{{}}},
		"Shard":              {Selectors: set, Shard: NewShard(sharding.ByUID)},
		"Transform":          {Selectors: set, Transform: func(obj any) (any, error) { return obj, nil }},
		"stored objects":     {Selectors: set, Storage: Storage{Mode: StorageNone}},
		"Prune drops labels": {Selectors: set, Prune: Prune{Paths: []string{`.metadata.labels["a"]`}}},
		`"spec.x"`:           {Selectors: NewSelectors(unknown)},
		"use NewSelectors":   {Selectors: &Selectors{}},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want %q", err, want)
		}
	}
	if err := set.Add(newSelector(t, "b", ""), unknown); err == nil || len(set.set()) != 1 {
		t.Errorf("Add of an unknown field = %v, and the set has %v", err, set.set())
	}
	options := Options{Defaults: ResourceOptions{Selectors: set}}
	i := mustInformer(t, newFactory(t, newServer(t), options), widgets)
	if err := i.KeepHistory(10); err == nil {
		t.Error("KeepHistory() = nil with Selectors")
	}
	if reason := i.options.whyNotPersisted(widgets); !strings.Contains(reason, "selectors") {
		t.Errorf("whyNotPersisted() = %q", reason)
	}
	if err := i.SetShardSelector(nil); err == nil {
		t.Error("SetShardSelector() = nil with Selectors")
	}
	plain := mustInformer(t, newFactory(t, newServer(t), Options{}), widgets)
	if err := plain.WaitForSelectors(t.Context()); err == nil {
		t.Error("WaitForSelectors() = nil without Selectors")
	}
}

// selectorHistory applies random changes to objects and selectors, and compares the cache, and the state that
// a handler derives from its events, with the objects that match.
type selectorHistory struct {
	*testing.T
	server   *apitest.Server
	types    *scriptedSource
	random   *rand.Rand
	set      *Selectors
	choices  []Selector
	chosen   map[int]bool
	informer *Informer
	live     map[string]*unstructured.Unstructured
	uid      int
	mu       sync.Mutex
	// delivered are the resource versions that the handler received, by key and UID.
	delivered map[string]string
}

func (h *selectorHistory) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { h.deliver("add", "", obj) },
		UpdateFunc: func(before, obj any) {
			h.deliver("update", before.(metav1.Object).GetResourceVersion(), obj)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			h.deliver("delete", "", obj)
		},
	}
}

func (h *selectorHistory) deliver(event, from string, obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := identity(obj)
	if last, known := h.delivered[id]; known == (event == "add") || from != "" && from != last {
		h.Errorf("%s of %s from version %q, but the handler has %q (known: %t)", event, id, from, last, known)
	}
	version := obj.(metav1.Object).GetResourceVersion()
	if naming.IsOlder(version, from) {
		h.Errorf("update of %s from version %s to the older %s", id, from, version)
	}
	h.delivered[id] = version
	if event == "delete" {
		delete(h.delivered, id)
	}
}

// change creates, updates or deletes an object.
func (h *selectorHistory) change() {
	name, ns := string(rune('p'+h.random.IntN(6))), string(rune('a'+h.random.IntN(2)))
	u, pairs := h.live[ns+"/"+name], map[string]string{"n": fmt.Sprint(h.random.Int())}
	if h.random.IntN(4) > 0 {
		pairs["team"] = string(rune('a' + h.random.IntN(4)))
	}
	if h.random.IntN(2) > 0 {
		pairs["red"] = fmt.Sprint(h.random.IntN(2))
	}
	if u != nil && h.random.IntN(4) == 0 {
		h.server.Delete(h.T, widgets, ns, name)
		delete(h.live, ns+"/"+name)
		return
	}
	if u == nil {
		next := widget(ns, name)
		next.SetLabels(pairs)
		h.server.Create(h.T, widgets, next)
		h.live[ns+"/"+name] = next
		return
	}
	u.SetLabels(pairs)
	h.server.Update(h.T, widgets, u)
}

// choose adds or removes a selector.
func (h *selectorHistory) choose() {
	k := h.random.IntN(len(h.choices))
	if h.chosen[k] = !h.chosen[k]; h.chosen[k] {
		if err := h.set.Add(h.choices[k]); err != nil {
			h.Error(err)
		}
		return
	}
	h.set.Remove(h.choices[k])
	for _, obj := range h.informer.GetStore().List() {
		if !h.set.set().has(obj) {
			h.Errorf("after Remove the cache has %s, which is not selected", identity(obj))
		}
	}
}

// recreate deletes the type with its objects, and creates it again.
func (h *selectorHistory) recreate() {
	h.types.set(func(ty *typesource.Type) { ty.Versions = nil })
	synctest.Wait()
	for _, u := range h.live {
		h.server.Delete(h.T, widgets, u.GetNamespace(), u.GetName())
	}
	clear(h.live)
	h.choose()
	h.uid++
	h.types.set(func(ty *typesource.Type) { ty.UID = types.UID(fmt.Sprint(h.uid)) })
}

func (h *selectorHistory) step() {
	switch h.random.IntN(16) {
	case 0, 1, 2, 3, 4:
		h.choose()
	case 5:
		h.server.Compact()
		h.server.CloseClientConnections()
		synctest.Wait()
	case 6:
		h.server.AddFaults(fault(widgetsPath, []string{"watch-list", "list", "watch"}[h.random.IntN(3)],
			[]int{422, 503, 410}[h.random.IntN(3)]))
	case 7:
		h.recreate()
	case 8, 9:
		time.Sleep(time.Duration(h.random.IntN(3000)) * time.Millisecond)
	case 10:
		synctest.Wait()
	default:
		h.change()
	}
}

// compare waits until the informer has recovered, and compares its cache and events with the server.
func (h *selectorHistory) compare(step string) {
	h.Helper()
	h.server.Repair()
	time.Sleep(2 * time.Minute) // longer than the pauses after failures
	if err := h.informer.WaitForSelectors(h.Context()); err != nil {
		h.Error(err)
	}
	synctest.Wait()
	want, cached := map[string]string{}, map[string]string{}
	list, err := h.server.Client(h.T).Resource(widgets).List(h.Context(), metav1.ListOptions{})
	if err != nil {
		h.Fatal(err)
	}
	for _, u := range list.Items {
		for k, s := range h.choices {
			if h.chosen[k] && s.matches(labels.Set(u.GetLabels()), s.fieldRequirements(), &u) {
				want[identity(&u)] = u.GetResourceVersion()
			}
		}
	}
	for _, obj := range h.informer.GetStore().List() {
		cached[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
	}
	if diff := cmp.Diff(want, cached); diff != "" {
		h.Errorf("%s: cached versions (-want +got):\n%s", step, diff)
	}
	if !maps.Equal(want, h.delivered) {
		h.Errorf("%s: versions according to the handler's events (-want +got):\n%s", step, cmp.Diff(want, h.delivered))
	}
}

// TestSelectorHistories verifies for random histories that the cache, and the state that a handler derives,
// equal the objects that match. Objects and selectors change while watches break, the server forgets
// versions, requests fail, and the type is deleted and created again.
func TestSelectorHistories(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				h := &selectorHistory{T: t, server: server, types: &scriptedSource{}, set: NewSelectors(),
					random: rand.New(rand.NewPCG(seed, 11)), chosen: map[int]bool{},
					live: map[string]*unstructured.Unstructured{}, delivered: map[string]string{}}
				for _, text := range []string{"team=a", "team=b", "team in (b,c)", "red", "red!=1", "team=a,red"} {
					h.choices = append(h.choices, newSelector(t, text, ""))
				}
				h.choices = append(h.choices, newSelector(t, "", "metadata.name=p"), newSelector(t, "red", "metadata.namespace=a"))
				options := ResourceOptions{Selectors: h.set}
				if seed%3 == 1 {
					options.Namespaces = InNamespaces("a", "b")
				}
				if seed%4 == 2 {
					options.Storage = Storage{Mode: StorageObject}
				}
				f := newVirtualFactory(t, server, Options{Types: h.types, Defaults: options})
				h.informer = mustInformer(t, f, widgets)
				if _, err := h.informer.AddEventHandler(h.handler()); err != nil {
					t.Fatal(err)
				}
				start(t, f)
				h.types.set(nil)
				for round := range 10 {
					for range h.random.IntN(24) {
						h.step()
					}
					h.compare(fmt.Sprint("round ", round))
				}
			})
		})
	}
}
