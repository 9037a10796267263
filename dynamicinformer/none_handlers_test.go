package dynamicinformer

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestNoneLateHandler verifies that a handler that is added after the start receives the objects of a new
// list, and then further events, of each partition by itself. It is synced after the last one. Other
// handlers receive only changes. A handler that is added before the first list causes no other list.
func TestNoneLateHandler(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widgetWithColor("ns", "a", "red"), widgetWithColor("other", "b", "red"))
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Storage: storageNone,
			Namespaces: InNamespaces("ns", "other")}})
		i := mustInformer(t, f, widgets)
		server.AddFaults(fault(inNamespace("ns"), "watch-list", http.StatusForbidden),
			fault(inNamespace("ns"), "list", http.StatusForbidden))
		start(t, f)
		early, _ := addRecorder(t, i)
		early.expect(t, "before the list of ns", "initial other/b red")
		server.Repair()
		i.Retry()
		early.expect(t, "the first list of ns", "initial ns/a red")
		relists := i.Stats().Events.Relists

		server.AddFaults(fault(inNamespace("other"), "watch-list", http.StatusForbidden),
			fault(inNamespace("other"), "list", http.StatusForbidden))
		late, handle := addRecorder(t, i)
		coalesced := &eventRecorder{lastStates: map[string]*unstructured.Unstructured{}}
		if _, err := i.AddEventHandler(Coalesce(coalesced)); err != nil {
			t.Fatal(err)
		}
		for _, a := range []*eventRecorder{late, coalesced} {
			a.expect(t, "the list of ns", "initial ns/a red")
		}
		server.Update(t, widgets, widgetWithColor("ns", "a", "green"))
		server.Update(t, widgets, widgetWithColor("other", "b", "green"))
		for _, a := range []*eventRecorder{late, coalesced} {
			a.expect(t, "an event of ns", "update ns/a identity to green")
		}
		if handle.HasSynced() {
			t.Error("HasSynced() = true before the list of the namespace other")
		}
		server.Repair()
		i.Retry()
		for _, a := range []*eventRecorder{late, coalesced} {
			a.expect(t, "the list of other", "initial other/b green")
		}
		if !handle.HasSynced() {
			t.Error("HasSynced() = false after the list of the namespace other")
		}
		early.expect(t, "the early handler", "update ns/a identity to green", "update other/b identity to green")
		server.Delete(t, widgets, "other", "b")
		for _, a := range []*eventRecorder{early, late, coalesced} {
			a.expect(t, "a deletion", "delete other/b green")
		}
		if n := i.Stats().Events.Relists - relists; n != 2 { // both handlers are added before a list
			t.Errorf("%d relists for two handlers of two partitions, want 2", n)
		}
		if r := i.Status().Relists; r.Requested == 0 {
			t.Errorf("Relists = %+v, want requested ones", r)
		}
	})
}

// widgetSelection selects the widgets.
var widgetSelection = Selection{Resource: "widgets", Group: "example.com"}

// TestNoneLateSubscriber verifies that OnSynced is called after the objects have been delivered.
func TestNoneLateSubscriber(t *testing.T) {
	th := newSubscriberFixture(t, "widgets")
	th.create(widgets, "a")
	options := ResourceOptions{Storage: storageNone}
	for range 2 {
		_, err := th.factory.Subscribe(widgetSelection, th.subscriber(), options)
		must(t, err)
		var events []string
		for len(events) == 0 || !strings.Contains(events[len(events)-1], "synced") {
			select {
			case e := <-th.events:
				if !strings.Contains(e, "update") { // of the first subscriber
					events = append(events, e)
				}
			case <-longContext(t).Done():
				t.Fatalf("got only %q", events)
			}
		}
		if diff := cmp.Diff([]string{"widgets v1: started 1 1", "widgets v1: initial a",
			"widgets v1: synced 1"}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
}

// TestNoneForgetsLateHandlers verifies that a handler that has received the objects of only one namespace
// receives deletions of only these when the type is deleted, and before it receives them again with another
// version.
func TestNoneForgetsLateHandlers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*subscriberFixture)
		want   []string
	}{
		"deletion": {func(th *subscriberFixture) { th.types.remove("widgets") },
			[]string{"widgets v1: lost a", "widgets v1: gone 1 NotInstalled"}},
		"version": {func(th *subscriberFixture) {
			th.types.set("widgets", func(t *typesource.Type) { t.Versions = []string{"v2"} })
		}, []string{"widgets v1: gone 1 VersionChanged", "widgets v1: started 2 1", "widgets v2: lost a",
			"widgets v2: initial a"}},
	} {
		t.Run(name, func(t *testing.T) {
			early := newSubscriberFixture(t, "widgets")
			late := *early
			late.events = make(chan string, 100)
			early.create(widgets, "a")
			early.server.Create(t, widgets, widget("ns", "b"))
			options := ResourceOptions{Storage: storageNone, Namespaces: InNamespaces("web", "ns"),
				Versions: PreferredVersion()}
			if _, err := early.factory.Subscribe(widgetSelection, early.subscriber(), options); err != nil {
				t.Fatal(err)
			}
			for event := ""; event != "widgets v1: synced 1"; event = early.next() {
			}
			for _, path := range []string{inNamespace("ns"), strings.ReplaceAll(inNamespace("ns"), "v1", "v2")} {
				early.server.AddFaults(fault(path, "watch-list", http.StatusForbidden),
					fault(path, "list", http.StatusForbidden))
			}
			if _, err := late.factory.Subscribe(widgetSelection, late.subscriber(), options); err != nil {
				t.Fatal(err)
			}
			late.expect("widgets v1: started 1 1", "widgets v1: initial a")
			test.change(&late)
			late.expect(test.want...)
		})
	}
}

// TestNoneConformance runs the conformance scenarios that need no stored objects. A handler rebuilds the
// objects from the events.
func TestNoneConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := apitest.New(t, apitest.ConfigMaps, apitest.Namespaces)
	conformance.Run(t, server.Config(), conformance.Subject{Name: "none", WithoutObjects: true,
		New: conformance.WithMirror(func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
			t.Helper()
			options := ResourceOptions{Storage: storageNone}
			if setup.Namespace != "" {
				options.Namespaces = InNamespaces(setup.Namespace)
			}
			var err error
			if options.LabelSelector, err = labels.Parse(setup.LabelSelector); err != nil {
				t.Fatal(err)
			}
			if options.FieldSelector, err = fields.ParseSelector(setup.FieldSelector); err != nil {
				t.Fatal(err)
			}
			f, err := New(Options{Config: setup.Config, Defaults: options})
			must(t, err)
			t.Cleanup(func() {
				if err := f.Shutdown(longContext(t)); err != nil {
					t.Error(err)
				}
			})
			return mustInformer(t, f, setup.GVR)
		})})
}

// TestNoneHistories verifies that after random changes, lost events, relists and new handlers, each handler
// has received every object once, and its states are those of the server.
func TestNoneHistories(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) { playNoneHistory(t, server, seed) })
		})
	}
}

func playNoneHistory(t *testing.T, server *apitest.Server, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	options := ResourceOptions{Storage: storageNone}
	switch seed % 4 {
	case 1:
		options.Namespaces = InNamespaces("ns", "other")
	case 2:
		options.AnyOf = []Selector{{Label: labels.SelectorFromSet(labels.Set{"color": "red"})},
			{Label: labels.SelectorFromSet(labels.Set{"color": "green"})}}
	case 3:
		options.Shard = NewShard(sharding.ByUID, fourShards...)
	}
	for _, path := range []string{widgetsPath, inNamespace("ns"), inNamespace("other")} {
		server.AddFaults(apitest.Fault{Path: path, Verb: "watch", Effect: loseEvents})
	}
	f := newVirtualFactory(t, server, Options{Defaults: options})
	i := mustInformer(t, f, widgets)
	start(t, f)
	var handlers []*eventRecorder
	addHandler := func() {
		a := &eventRecorder{lastStates: map[string]*unstructured.Unstructured{}}
		handler := cache.ResourceEventHandler(a)
		if random.IntN(2) == 0 {
			handler, a.merged = Coalesce(a), true
		}
		_, err := i.AddEventHandler(handler)
		must(t, err)
		handlers = append(handlers, a)
	}
	exists := map[string]bool{}
	for range 120 {
		namespace, name := []string{"ns", "other"}[random.IntN(2)], []string{"a", "b", "lost"}[random.IntN(3)]
		key, color := namespace+"/"+name, []string{"red", "green", "blue"}[random.IntN(3)]
		switch n := random.IntN(12); {
		case n >= 10 && options.Shard != nil:
			options.Shard.SetRanges(fourShards[random.IntN(2) : 2+random.IntN(3)]...)
		case n == 0:
			addHandler()
		case n == 1:
			go func() { _ = i.Relist(t.Context()) }() // ended by the list
		case n == 2:
			time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		case !exists[key]:
			server.Create(t, widgets, widgetWithColor(namespace, name, color))
			exists[key] = true
		case n < 5:
			server.Delete(t, widgets, namespace, name)
			exists[key] = false
		default:
			server.Update(t, widgets, widgetWithColor(namespace, name, color))
		}
	}
	addHandler()
	if options.Shard != nil {
		options.Shard.SetRanges(fourShards...)
	}
	must(t, i.Relist(t.Context()))
	time.Sleep(time.Minute)
	synctest.Wait()
	content, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	want := map[string]string{}
	for _, u := range content.Items {
		if seed%4 != 2 || u.GetLabels()["color"] != "blue" {
			want[keyOfEvent(&u)] = u.GetResourceVersion()
		}
	}
	for k, a := range handlers {
		got := map[string]string{}
		for key, u := range a.lastStates {
			got[key] = u.GetResourceVersion()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("handler %d of %d (-want +got):\n%s\n%v", k, len(handlers), diff, a.events)
		}
		for _, event := range a.events {
			if slices.ContainsFunc([]string{"twice", "unknown", "wrong"},
				func(word string) bool { return strings.Contains(event, word) }) {
				t.Errorf("handler %d: %s", k, event)
			}
		}
	}
}
