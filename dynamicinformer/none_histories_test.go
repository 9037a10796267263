package dynamicinformer

import (
	"fmt"
	"math/rand/v2"
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
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestNoneConformance runs the conformance scenarios that need no stored objects. A handler rebuilds the
// objects from the events.
func TestNoneConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	server := apitest.New(t, apitest.ConfigMaps, apitest.Namespaces)
	conformance.Run(t, server.Config(), conformance.Subject{Name: "none", WithoutObjects: true,
		New: conformance.Mirrored(func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
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
			if err != nil {
				t.Fatal(err)
			}
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
