package query_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/indexers/query"
)

// handlerCaller is an informer whose handler the test calls.
type handlerCaller struct {
	cache.ResourceEventHandler
	failsToAdd, removed bool
}

func (h *handlerCaller) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration,
	error) {
	if h.failsToAdd {
		return nil, errors.New("stopped")
	}
	h.ResourceEventHandler = handler
	return syncedRegistration{}, nil
}

func (h *handlerCaller) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	h.removed = true
	return nil
}

type syncedRegistration struct {
	cache.ResourceEventHandlerRegistration
}

func (syncedRegistration) HasSynced() bool { return true }

// subscribe subscribes to a query at an informer whose handler the test calls. It returns this informer and
// the events of the subscription.
func subscribe(t testing.TB, q query.Query) (*handlerCaller, *[]query.Event) {
	t.Helper()
	matcher, err := query.NewMatcher(q, functions(t).Indexes()...)
	noError(t, err)
	caller, events := &handlerCaller{}, &[]query.Event{}
	s, err := query.Subscribe(caller, matcher.WithNow(modelNow), func(e query.Event) {
		*events = append(*events, e)
	})
	if err != nil || !s.HasSynced() {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil || !caller.removed {
			t.Error(err)
		}
	})
	return caller, events
}

// eventTexts returns a line for each event.
func eventTexts(events []query.Event) []string {
	out := []string{}
	for _, e := range events {
		text := fmt.Sprint(e.Type, " ", e.Key)
		if e.Initial {
			text += " initial"
		}
		if e.Gone {
			text += " gone"
		}
		out = append(out, text)
	}
	return out
}

// TestSubscription verifies that an object is Added when it begins to match, and Deleted when it no longer
// matches.
func TestSubscription(t *testing.T) {
	h, events := subscribe(t, query.And(query.Eq("team", "edge"), query.Greater("weight", "5")))
	light, heavy, otherTeam := newWidget("a/x", "edge", 1, nil), newWidget("a/x", "edge", 7, nil), newWidget("a/y",
		"core", 9, nil)
	recreated := heavy.DeepCopy()
	recreated.SetUID(types.UID("another"))
	h.OnAdd(heavy, true)
	h.OnAdd(otherTeam, true)
	h.OnUpdate(otherTeam, otherTeam)
	heavier := newWidget("a/x", "edge", 8, nil)
	h.OnUpdate(heavy, heavier)
	h.OnUpdate(heavier, light)
	h.OnUpdate(light, light)
	h.OnUpdate(light, heavy)
	h.OnUpdate(heavy, recreated)
	h.OnDelete(otherTeam)
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/x", Obj: light})
	h.OnDelete(light)
	h.OnAdd(heavy, false)
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "a/x"})
	h.OnAdd("no object", false)
	h.OnUpdate(nil, nil)
	h.OnDelete(7)
	want := []string{
		"Added a/x initial", "Modified a/x", "Deleted a/x", "Added a/x", "Deleted a/x gone", "Added a/x",
		"Deleted a/x gone", "Added a/x", "Deleted a/x gone",
	}
	if diff := cmp.Diff(want, eventTexts(*events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if e := (*events)[2]; e.Object != light || e.Old != heavier {
		t.Errorf("event of an object that no longer matches: Object = %v, Old = %v; want %v and %v", e.Object,
			e.Old, light, heavier)
	}
	if e := (*events)[3]; e.Object != heavy || e.Old != light {
		t.Errorf("event of an object that begins to match: Object = %v, Old = %v; want %v and %v", e.Object,
			e.Old, heavy, light)
	}
	if e := (*events)[5]; e.Object != recreated || e.Old != nil {
		t.Errorf("event of a recreated object: Object = %v, Old = %v; want %v and nil", e.Object, e.Old,
			recreated)
	}
}

// TestSubscriptionToAShard verifies that an object that leaves the shard is Deleted, but not Gone.
func TestSubscriptionToAShard(t *testing.T) {
	h, events := subscribe(t, query.Eq("team", "edge"))
	matching, other := newWidget("a/x", "edge", 1, nil), newWidget("a/y", "core", 1, nil)
	handler, ok := h.ResourceEventHandler.(sharding.LeftShardHandler)
	if !ok {
		t.Fatal("the handler does not implement LeftShardHandler")
	}
	handler.OnAdd(matching, true)
	handler.OnAdd(other, true)
	handler.OnLeftShard(matching)
	handler.OnLeftShard(other)
	handler.OnLeftShard("no object")
	handler.OnAdd(matching, false)
	if diff := cmp.Diff([]string{"Added a/x initial", "Deleted a/x", "Added a/x"},
		eventTexts(*events)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestSubscriptionSkipsRepeats verifies that an update causes an event only if the resource version or the
// content has changed.
func TestSubscriptionSkipsRepeats(t *testing.T) {
	widgetAt := func(version string, weight int64) *unstructured.Unstructured {
		u := newWidget("a/x", "edge", weight, nil)
		u.SetUID("one")
		u.SetResourceVersion(version)
		return u
	}
	current := widgetAt("5", 7)
	for name, test := range map[string]struct {
		old, now any
		want     []string
	}{
		"resync":                    {current, current, []string{}},
		"list after a broken watch": {widgetAt("5", 7), widgetAt("5", 7), []string{}},
		"another type of object": {&metav1.PartialObjectMetadata{ObjectMeta: meta("5")},
			&metav1.PartialObjectMetadata{ObjectMeta: meta("5")}, []string{}},
		"no resource version":       {widgetAt("", 7), widgetAt("", 7), []string{}},
		"write":                     {widgetAt("5", 7), widgetAt("6", 8), []string{"Modified a/x"}},
		"write of the same":         {widgetAt("5", 7), widgetAt("6", 7), []string{"Modified a/x"}},
		"default of another schema": {widgetAt("5", 7), widgetAt("5", 8), []string{"Modified a/x"}},
		"unknown old object":        {nil, widgetAt("5", 7), []string{"Modified a/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, events := subscribe(t, query.All())
			h.OnAdd(current, true)
			*events = nil
			h.OnUpdate(test.old, test.now)
			if diff := cmp.Diff(test.want, eventTexts(*events)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// meta returns the metadata of the object a/x.
func meta(version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "a", Name: "x", UID: "one", ResourceVersion: version}
}

// TestSubscriptionMatchesModel verifies that the events of random changes, applied to an empty set, produce
// the objects that match the query.
func TestSubscriptionMatchesModel(t *testing.T) {
	queries := 40
	if os.Getenv("CRDCACHE_NIGHTLY") != "" {
		queries = 150
	}
	random := rand.New(rand.NewPCG(11, 12))
	for range queries {
		q, matches := randomQuery(random, 2)
		h, events := subscribe(t, q)
		objects := map[string]*unstructured.Unstructured{}
		matched := map[string]*unstructured.Unstructured{}
		for range 60 {
			changeRandomly(random, objects, h)
			for _, e := range *events {
				_, isKnown := matched[e.Key]
				switch e.Type {
				case query.Added, query.Modified:
					if isKnown != (e.Type == query.Modified) {
						t.Fatalf("%s: event %v, but the object was known: %v", q, eventTexts([]query.Event{e}),
							isKnown)
					}
					if isKnown && cmp.Equal(matched[e.Key], e.Object) {
						t.Fatalf("%s: event %v, but the object has not changed", q, eventTexts([]query.Event{e}))
					}
					matched[e.Key] = e.Object
				case query.Deleted:
					if !isKnown {
						t.Fatalf("%s: event %v of an unknown object", q, eventTexts([]query.Event{e}))
					}
					delete(matched, e.Key)
				}
			}
			*events = nil
			want := map[string]*unstructured.Unstructured{}
			for k, u := range objects {
				if matches(u) {
					want[k] = u
				}
			}
			if !maps.EqualFunc(matched, want,
				func(a, b *unstructured.Unstructured) bool { return cmp.Equal(a, b) }) {
				t.Fatalf("%s: objects according to the events %v, want %v", q,
					slices.Sorted(maps.Keys(matched)), slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

// changeRandomly creates, updates or deletes one of the objects and calls the handler.
func changeRandomly(random *rand.Rand, objects map[string]*unstructured.Unstructured, h *handlerCaller) {
	next := randomWidget(random, random.IntN(4))
	next.SetUID(types.UID(fmt.Sprint(random.IntN(3))))
	k := keyOf(next)
	switch old := objects[k]; {
	case old == nil:
		h.OnAdd(next, false)
	case random.IntN(4) == 0:
		delete(objects, k)
		h.OnDelete(old)
		return
	case random.IntN(4) == 0:
		h.OnUpdate(old, old.DeepCopy())
		return
	default:
		h.OnUpdate(old, next)
	}
	objects[k] = next
}

func TestSubscriptionErrors(t *testing.T) {
	all := functions(t).Indexes()
	var unknown *query.UnknownIndexError
	if _, err := query.NewMatcher(query.Eq("nope", "x"), all...); !errors.As(err, &unknown) {
		t.Errorf("NewMatcher of an unknown index: got the error %v, want an UnknownIndexError", err)
	}
	if _, err := query.NewMatcher(query.Less("team", "x"), all...); err == nil {
		t.Error("NewMatcher of a comparison of an unsorted index returned no error")
	}
	matcher, err := query.NewMatcher(query.All())
	noError(t, err)
	if _, err := query.Subscribe(&handlerCaller{failsToAdd: true}, matcher,
		func(query.Event) {}); err == nil {
		t.Error("Subscribe to a stopped informer returned no error")
	}
}
