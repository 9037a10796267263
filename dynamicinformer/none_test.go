package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var storageNone = Storage{Mode: StorageNone}

// eventRecorder records the events of a handler of objects that are not stored, and checks identities.
type eventRecorder struct {
	mu     sync.Mutex
	events []string
	// lastStates has the last state of each object that the handler received, by key.
	lastStates map[string]*unstructured.Unstructured
	// merged is true if an identity can be that of a later state, because events are merged.
	merged bool
}

func (a *eventRecorder) record(format string, args ...any) {
	a.events = append(a.events, fmt.Sprintf(format, args...))
}

// describeState describes a state of an object: its color, or "identity" for the identity of the last state.
func (a *eventRecorder) describeState(obj any) string {
	u := obj.(*unstructured.Unstructured)
	if u.GetKind() != "PartialObjectMetadata" {
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		return color
	}
	last := a.lastStates[keyOfEvent(u)]
	if last == nil {
		return "identity of an unknown object"
	}
	want := map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
		"metadata": map[string]any{"name": last.GetName(), "namespace": last.GetNamespace(),
			"uid": string(last.GetUID()), "resourceVersion": last.GetResourceVersion()}}
	if a.merged {
		want["metadata"].(map[string]any)["resourceVersion"] = u.GetResourceVersion()
	}
	if diff := cmp.Diff(want, u.Object); diff != "" {
		return "wrong identity " + diff
	}
	return "identity"
}

func keyOfEvent(obj any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err)
	}
	return key
}

func (a *eventRecorder) OnAdd(obj any, initial bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := keyOfEvent(obj)
	if a.lastStates[key] != nil {
		a.record("%s was added twice", key)
	}
	a.record("%s %s %s", map[bool]string{true: "initial", false: "add"}[initial], key, a.describeState(obj))
	a.lastStates[key] = obj.(*unstructured.Unstructured)
}

func (a *eventRecorder) OnUpdate(before, after any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, old, u := keyOfEvent(after), a.describeState(before), after.(*unstructured.Unstructured)
	if last := a.lastStates[key]; last != nil && last.GetResourceVersion() == u.GetResourceVersion() {
		a.record("repeat %s %s", key, a.describeState(u))
	} else {
		a.record("update %s %s to %s", key, old, a.describeState(u))
	}
	a.lastStates[key] = u
}

func (a *eventRecorder) OnDelete(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, event := keyOfEvent(obj), "delete"
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		event, obj = "lost", lost.Obj
	}
	a.record("%s %s %s", event, key, a.describeState(obj))
	delete(a.lastStates, key)
}

func (a *eventRecorder) OnLeftShard(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record("left %s %s", keyOfEvent(obj), a.describeState(obj))
	delete(a.lastStates, keyOfEvent(obj))
}

// addRecorder adds a recording handler.
func addRecorder(t *testing.T, i *Informer) (*eventRecorder, cache.ResourceEventHandlerRegistration) {
	t.Helper()
	a := &eventRecorder{lastStates: map[string]*unstructured.Unstructured{}}
	handle, err := i.AddEventHandler(a)
	must(t, err)
	return a, handle
}

// expect compares the events since the last call, sorted, with the expected ones.
func (a *eventRecorder) expect(t *testing.T, step string, want ...string) {
	t.Helper()
	time.Sleep(time.Minute) // of virtual time: the informer may have to list
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.events)
	if diff := cmp.Diff(want, a.events); diff != "" {
		t.Errorf("%s: the events (-want +got):\n%s", step, diff)
	}
	a.events = nil
}

// TestNone verifies that handlers receive each object, and identities in place of old states. A relist
// repeats unchanged objects, and finds the additions, changes and deletions that the watch has lost.
func TestNone(t *testing.T) {
	for name, options := range map[string]ResourceOptions{
		"all":        {},
		"namespaces": {Namespaces: InNamespaces("ns", "other")},
		"keep":       {Keep: Keep{Paths: []string{".spec.color"}}},
		"prune":      {Prune: Prune{Paths: []string{".spec.layers"}}},
		"transform":  {Transform: func(obj any) (any, error) { return obj, nil }},
		"shard":      {Shard: NewShard(sharding.ByUID, sharding.Split(1)...)},
		"any of":     {AnyOf: []Selector{{}, {}}},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				for _, path := range []string{widgetsPath, inNamespace("ns"), inNamespace("other")} {
					server.AddFaults(apitest.Fault{Path: path, Verb: "watch", Effect: loseEvents})
				}
				server.Create(t, widgets, widgetWithColor("ns", "a", "red"), widgetWithColor("other", "b", "red"))
				options.Storage = storageNone
				f := newVirtualFactory(t, server, Options{Defaults: options})
				i := mustInformer(t, f, widgets)
				a, _ := addRecorder(t, i)
				start(t, f)
				a.expect(t, "start", "initial ns/a red", "initial other/b red")
				server.Update(t, widgets, widgetWithColor("ns", "a", "green"))
				server.Create(t, widgets, widgetWithColor("ns", "lost", "red"), widgetWithColor("ns", "c", "red"))
				server.Delete(t, widgets, "other", "b")
				a.expect(t, "watch", "add ns/c red", "delete other/b red", "update ns/a identity to green")
				relist := func() {
					t.Helper()
					must(t, i.Relist(t.Context()))
				}
				relist()
				a.expect(t, "addition", "add ns/lost red", "repeat ns/a green", "repeat ns/c red")
				server.Update(t, widgets, widgetWithColor("ns", "lost", "green"))
				relist()
				a.expect(t, "change", "repeat ns/a green", "repeat ns/c red", "update ns/lost identity to green")
				server.Delete(t, widgets, "ns", "lost")
				relist()
				a.expect(t, "deletion", "lost ns/lost identity", "repeat ns/a green", "repeat ns/c red")
				server.Create(t, widgets, widgetWithColor("ns", "lost", "red"))
				relist()
				server.Delete(t, widgets, "ns", "lost")
				server.Create(t, widgets, widgetWithColor("ns", "lost", "blue"))
				a.expect(t, "another addition", "add ns/lost red", "repeat ns/a green", "repeat ns/c red")
				relist()
				a.expect(t, "another UID", "add ns/lost blue", "lost ns/lost identity", "repeat ns/a green",
					"repeat ns/c red")
				if diff := cmp.Diff([]string{"ns/a", "ns/c", "ns/lost"}, keysOf(i)); diff != "" {
					t.Errorf("the keys (-want +got):\n%s", diff)
				}
				if s := i.Stats(); s.Objects != 3 || s.Storage != "none" || s.Bytes() > 400 {
					t.Errorf("Stats = %+v, want 3 objects of storage none in at most 400 bytes", s)
				}
			})
		})
	}
}

// TestNoneSelections verifies that an object that leaves the alternatives is lost, because its last selected
// state is not known, and one that leaves the shard leaves with its identity.
func TestNoneSelections(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		red := []Selector{{Label: labels.SelectorFromSet(labels.Set{"color": "red"})},
			{Label: labels.SelectorFromSet(labels.Set{"other": "yes"})}}
		shard := NewShard(sharding.ByUID, fourShards...)
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Storage: storageNone, AnyOf: red,
			Shard: shard}})
		i := mustInformer(t, f, widgets)
		a, _ := addRecorder(t, i)
		for n, name := range []string{"stays", "leaves"} {
			u := widgetWithColor("ns", name, "red")
			u.SetUID(widgetInQuarter(name, 3*n).GetUID())
			server.Create(t, widgets, u)
		}
		start(t, f)
		a.expect(t, "start", "initial ns/leaves red", "initial ns/stays red")
		server.Update(t, widgets, widgetWithColor("ns", "stays", "green"))
		a.expect(t, "the alternatives", "lost ns/stays identity")
		server.Update(t, widgets, widgetWithColor("ns", "stays", "red"))
		shard.SetRanges(fourShards[0])
		a.expect(t, "the shard", "add ns/stays red", "left ns/leaves identity")
	})
}

// TestNoneTransformFails verifies that if the transform of a listed object fails, handlers receive neither a
// deletion nor an identity in place of the object.
func TestNoneTransformFails(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		fails := false
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Storage: storageNone,
			Transform: func(obj any) (any, error) {
				if fails {
					return nil, errors.New("intended")
				}
				return obj, nil
			}}})
		i := mustInformer(t, f, widgets)
		a, _ := addRecorder(t, i)
		server.Create(t, widgets, widgetWithColor("ns", "a", "red"))
		start(t, f)
		a.expect(t, "start", "initial ns/a red")
		fails = true
		must(t, i.Relist(t.Context()))
		a.expect(t, "relist")
		server.Delete(t, widgets, "ns", "a")
		a.expect(t, "deletion", "lost ns/a identity")
	})
}

// TestNoneIsRefused verifies that options that need objects are refused, and reads fail.
func TestNoneIsRefused(t *testing.T) {
	yes, hour := true, time.Hour
	byName := cache.Indexers{"name": func(any) ([]string, error) { return nil, nil }}
	for name, options := range map[string]ResourceOptions{
		"Resync": {Resync: &hour}, "Persist": {Persist: &yes}, "Indexers": {Indexers: byName},
	} {
		for _, merged := range []Options{
			{Defaults: func() ResourceOptions { o := options; o.Storage = storageNone; return o }()},
			{Defaults: options, Resources: map[schema.GroupVersionResource]ResourceOptions{
				widgets: {Storage: storageNone}}},
		} {
			err := merged.validate()
			if !errors.Is(err, ErrNotStored) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: validate() = %v, want ErrNotStored with the option", name, err)
			}
		}
		f := newFactory(t, newServer(t), Options{Defaults: ResourceOptions{Storage: storageNone}})
		if _, err := f.Acquire(widgets, options); !errors.Is(err, ErrNotStored) {
			t.Errorf("%s: Acquire() = %v, want ErrNotStored", name, err)
		}
	}
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("ns", "a"))
		f := newVirtualFactory(t, server, Options{Resources: map[schema.GroupVersionResource]ResourceOptions{
			widgets: {Storage: storageNone}}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		for name, read := range unsupportedReads(i) {
			if err := read(); !errors.Is(err, ErrNotStored) {
				t.Errorf("%s: error %v, want ErrNotStored", name, err)
			}
		}
		for name, read := range panickingReads(i) {
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, ErrNotStored) {
						t.Errorf("%s: panicked with %v, want ErrNotStored", name, err)
					}
				}()
				read()
				t.Errorf("%s returned, want a panic with ErrNotStored", name)
			}()
		}
		if s := i.Snapshot(); s.Len() != 1 || s.Keys()[0] != "ns/a" || s.ResourceVersion() == "" {
			t.Errorf("Snapshot has %d objects %v at version %q, want only ns/a at some version", s.Len(),
				s.Keys(), s.ResourceVersion())
		}
		if i.Persistence().DisabledReason == "" {
			t.Error("the informer is persisted")
		}
	})
}

// unsupportedReads are the calls that return an error.
func unsupportedReads(i *Informer) map[string]func() error {
	drop := func(_ any, err error) error { return err }
	x := i.GetIndexer()
	return map[string]func() error{
		"Get":        func() error { _, _, err := x.Get(widget("ns", "a")); return err },
		"GetByKey":   func() error { _, _, err := x.GetByKey("ns/a"); return err },
		"ByIndex":    func() error { return drop(x.ByIndex(cache.NamespaceIndex, "ns")) },
		"Index":      func() error { return drop(x.Index(cache.NamespaceIndex, widget("ns", "a"))) },
		"IndexKeys":  func() error { return drop(x.IndexKeys(cache.NamespaceIndex, "ns")) },
		"Lister.Get": func() error { return drop(i.Lister().Get("ns/a")) },
		"List":       func() error { return drop(i.Lister().List(labels.Everything())) },
		"List in a namespace": func() error {
			return drop(i.Lister().ByNamespace("ns").List(labels.Everything()))
		},
		"Get in a namespace": func() error { return drop(i.Lister().ByNamespace("ns").Get("a")) },
		"AddIndexers": func() error {
			return i.AddIndexers(cache.Indexers{"x": cache.MetaNamespaceIndexFunc})
		},
		"KeepHistory": func() error { return i.KeepHistory(10) },
		"MoveHandlers": func() error {
			return MoveHandlers(context.Background(), func() {},
				&HandlerMove{From: []*Informer{i}, To: []*Informer{i}})
		},
		"resync": func() error {
			return drop(i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{}, time.Hour))
		},
		"Snapshot.Err": func() error { return i.Snapshot().Err() },
		"Snapshot.AllJSON": func() error {
			return i.Snapshot().AllJSON(func(string, []byte) error { return nil })
		},
		"Snapshot.KeysByIndex": func() error {
			return drop(i.Snapshot().KeysByIndex(cache.NamespaceIndex, "ns"))
		},
	}
}

// panickingReads are the calls that return no error.
func panickingReads(i *Informer) map[string]func() {
	return map[string]func(){
		"List":                 func() { i.GetStore().List() },
		"ListIndexFuncValues":  func() { i.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) },
		"Snapshot.Get":         func() { i.Snapshot().Get("ns/a") },
		"Snapshot.Stored":      func() { i.Snapshot().Stored("ns/a") },
		"Snapshot.Lookup":      func() { i.Snapshot().Lookup(cache.ObjectName{Namespace: "ns", Name: "a"}) },
		"Snapshot.All":         func() { _ = maps.Collect(i.Snapshot().All()) },
		"Snapshot.AllStored":   func() { _ = maps.Collect(i.Snapshot().AllStored()) },
		"Snapshot.Index":       func() { i.Snapshot().Index(cache.NamespaceIndex) },
		"Snapshot.IndexNames":  func() { i.Snapshot().IndexNames() },
		"History.Snapshot.Get": func() { i.History().Snapshot.Get("ns/a") },
	}
}
