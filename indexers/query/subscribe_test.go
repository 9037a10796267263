package query_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// handlerCaller calls handlers like an informer.
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
	return registered{}, nil
}

func (h *handlerCaller) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	h.removed = true
	return nil
}

type registered struct {
	cache.ResourceEventHandlerRegistration
}

func (registered) HasSynced() bool { return true }

func follow(t testing.TB, q query.Query) (*handlerCaller, *[]query.Event) {
	t.Helper()
	matcher, err := query.NewMatcher(q, functions(t).Indexes()...)
	if err != nil {
		t.Fatal(err)
	}
	h, events := &handlerCaller{}, &[]query.Event{}
	s, err := query.Subscribe(h, matcher.At(modelNow), func(e query.Event) { *events = append(*events, e) })
	if err != nil || !s.HasSynced() {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil || !h.removed {
			t.Error(err)
		}
	})
	return h, events
}

func summary(events []query.Event) []string {
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

// TestSubscription verifies that an object is added when it begins to match, and deleted when it ceases to.
func TestSubscription(t *testing.T) {
	h, events := follow(t, query.And(query.Eq("team", "edge"), query.Greater("weight", "5")))
	light, heavy, other := simple("a/x", "edge", 1, nil), simple("a/x", "edge", 7, nil), simple("a/y",
		"core", 9, nil)
	renewed := heavy.DeepCopy()
	renewed.SetUID(types.UID("another"))
	h.OnAdd(heavy, true)
	h.OnAdd(other, true)
	h.OnUpdate(other, other)
	heavier := simple("a/x", "edge", 8, nil)
	h.OnUpdate(heavy, heavier)
	h.OnUpdate(heavier, light)
	h.OnUpdate(light, light)
	h.OnUpdate(light, heavy)
	h.OnUpdate(heavy, renewed)
	h.OnDelete(other)
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
	if diff := cmp.Diff(want, summary(*events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if e := (*events)[2]; e.Object != light || e.Old != heavier {
		t.Errorf("ceased to match: got %v, %v", e.Object, e.Old)
	}
	if e := (*events)[3]; e.Object != heavy || e.Old != light {
		t.Errorf("began to match: got %v, %v", e.Object, e.Old)
	}
	if e := (*events)[5]; e.Object != renewed || e.Old != nil {
		t.Errorf("replaced: got %v, %v", e.Object, e.Old)
	}
}

// TestSubscriptionToAShard verifies that an object that leaves the shard is Deleted, but not Gone.
func TestSubscriptionToAShard(t *testing.T) {
	h, events := follow(t, query.Eq("team", "edge"))
	found, other := simple("a/x", "edge", 1, nil), simple("a/y", "core", 1, nil)
	departed, ok := h.ResourceEventHandler.(dynamicinformer.LeftShardHandler)
	if !ok {
		t.Fatal("the handler does not implement LeftShardHandler")
	}
	departed.OnAdd(found, true)
	departed.OnAdd(other, true)
	departed.OnLeftShard(found)
	departed.OnLeftShard(other)
	departed.OnLeftShard("no object")
	departed.OnAdd(found, false)
	if diff := cmp.Diff([]string{"Added a/x initial", "Deleted a/x", "Added a/x"},
		summary(*events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSubscriptionRepeats verifies that repeated notifications cause no event; a changed content does,
// whatever the resource version.
func TestSubscriptionRepeats(t *testing.T) {
	written := func(version string, weight int64) *unstructured.Unstructured {
		u := simple("a/x", "edge", weight, nil)
		u.SetUID("one")
		u.SetResourceVersion(version)
		return u
	}
	kept := written("5", 7)
	for name, test := range map[string]struct {
		old, now any
		want     []string
	}{
		"resync":                    {kept, kept, []string{}},
		"list after a broken watch": {written("5", 7), written("5", 7), []string{}},
		"another type of object": {&metav1.PartialObjectMetadata{ObjectMeta: meta("5")},
			&metav1.PartialObjectMetadata{ObjectMeta: meta("5")}, []string{}},
		"no resource version":        {written("", 7), written("", 7), []string{}},
		"write":                      {written("5", 7), written("6", 8), []string{"Modified a/x"}},
		"write of the same":          {written("5", 7), written("6", 7), []string{"Modified a/x"}},
		"default of another schema":  {written("5", 7), written("5", 8), []string{"Modified a/x"}},
		"nothing known of it before": {nil, written("5", 7), []string{"Modified a/x"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, events := follow(t, query.All())
			h.OnAdd(kept, true)
			*events = nil
			h.OnUpdate(test.old, test.now)
			if diff := cmp.Diff(test.want, summary(*events)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// meta is the metadata of a typed copy of the same object.
func meta(version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "a", Name: "x", UID: "one", ResourceVersion: version}
}

// TestSubscriptionModel verifies that applied to an empty set, the events of random changes give the result
// of the query.
func TestSubscriptionModel(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 150 {
		q, holds := randomQuery(random, 2)
		h, events := follow(t, q)
		objects := map[string]*unstructured.Unstructured{}
		found := map[string]*unstructured.Unstructured{}
		for range 60 {
			changeRandomly(random, objects, h)
			for _, e := range *events {
				_, had := found[e.Key]
				switch e.Type {
				case query.Added, query.Modified:
					if had != (e.Type == query.Modified) {
						t.Fatalf("%s: %v, had %v", q, summary([]query.Event{e}), had)
					}
					if had && cmp.Equal(found[e.Key], e.Object) {
						t.Fatalf("%s: %v, but nothing is", q, summary([]query.Event{e}))
					}
					found[e.Key] = e.Object
				case query.Deleted:
					if !had {
						t.Fatalf("%s: %v", q, summary([]query.Event{e}))
					}
					delete(found, e.Key)
				}
			}
			*events = nil
			want := map[string]*unstructured.Unstructured{}
			for k, u := range objects {
				if holds(u) {
					want[k] = u
				}
			}
			if !maps.EqualFunc(found, want,
				func(a, b *unstructured.Unstructured) bool { return cmp.Equal(a, b) }) {
				t.Fatalf("%s: found %v, want %v", q, slices.Sorted(maps.Keys(found)),
					slices.Sorted(maps.Keys(want)))
			}
		}
	}
}

func changeRandomly(random *rand.Rand, objects map[string]*unstructured.Unstructured, h *handlerCaller) {
	next := widget(random, random.IntN(4))
	next.SetUID(types.UID(fmt.Sprint(random.IntN(3))))
	k := key(next)
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
		t.Errorf("got %v", err)
	}
	if _, err := query.NewMatcher(query.Less("team", "x"), all...); err == nil {
		t.Error("an index without an order is compared")
	}
	matcher, err := query.NewMatcher(query.All())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := query.Subscribe(&handlerCaller{failsToAdd: true}, matcher,
		func(query.Event) {}); err == nil {
		t.Error("no error of an informer that has stopped")
	}
}
