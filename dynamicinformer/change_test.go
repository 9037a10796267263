package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// changeHistory is a moveHistory of a subscription that changes.
type changeHistory struct {
	*moveHistory
	subscription *Subscription
	changed      time.Time
	// latest is the last subscriber that was called. former has the objects of the one before, until a call
	// of the latest one confirms or deletes them.
	subscribers, latest int
	former              map[string]string
}

// subscriber returns a subscriber that compares each call with the objects that it has received.
func (h *changeHistory) subscriber() *Subscriber {
	h.subscribers++
	number := h.subscribers
	begin := func() {
		h.mu.Lock() // the caller unlocks
		if number < h.latest || h.latest > 0 && number > h.latest && len(h.former) > 0 {
			h.problems = append(h.problems, fmt.Sprintf("subscriber %d called after %d", number, h.latest))
		}
		if number > h.latest {
			h.latest, h.former, h.live = number, h.live, map[string]string{}
		}
	}
	handle := func(event string, obj metav1.Object) {
		begin()
		key := cache.MetaObjectToName(obj).String()
		if event == "update" && h.live[key] == obj.GetResourceVersion() && !h.wasUnserved {
			h.problems = append(h.problems, "unchanged "+key)
		}
		if version, known := h.former[key]; known && event == "delete" {
			h.live[key] = version
		}
		delete(h.former, key)
		h.mu.Unlock()
		h.handle(event, obj)
	}
	return &Subscriber{
		OnAdd: func(_ schema.GroupVersionResource, obj *unstructured.Unstructured, _ bool) {
			handle("add", obj)
		},
		OnUpdate: func(_ schema.GroupVersionResource, _, obj *unstructured.Unstructured) { handle("update", obj) },
		OnDelete: func(_ schema.GroupVersionResource, obj *unstructured.Unstructured, _ bool) {
			handle("delete", obj)
		},
		OnSynced: func(status.Incarnation) {
			if begin(); len(h.former) > 0 {
				h.problems = append(h.problems, fmt.Sprintf("neither added nor deleted: %v", h.former))
			}
			h.mu.Unlock()
		},
	}
}

// change changes the options, and sometimes the subscriber.
func (h *changeHistory) change() {
	options := []ResourceOptions{
		{Namespaces: InNamespaces("a")}, {FieldSelector: fields.OneTermEqualSelector("metadata.name", "1")},
		{}, {Storage: Storage{Mode: StorageObject}}, {Keep: Keep{Paths: []string{".spec"}}},
		{Namespaces: InNamespaces("a", "b")}}
	n := h.IntN(len(options))
	selects := func(key string) bool { return n > 1 || key[2*n] == "a1"[n] }
	if h.IntN(3) == 0 {
		time.Sleep(20 * time.Second)
		h.settle()
	}
	h.mu.Lock()
	if !h.unserved && time.Since(h.changed) > 10*time.Second {
		h.selects = h.selects[max(0, len(h.selects)-1):]
	}
	h.changed = time.Now()
	h.selects = append(h.selects, selects)
	h.mu.Unlock()
	var next *Subscriber
	if h.subscription == nil || h.IntN(3) == 0 {
		next = h.subscriber()
	}
	if h.subscription != nil {
		h.subscription.Change(next, options[n])
		return
	}
	var err error
	h.subscription, err = h.factory.Subscribe(wholeGroup, *next, options[n])
	must(h.T, err)
}

// TestChangeHistories changes a subscription while objects change, and while the CRD is deleted, created,
// served and not served. The subscriber must receive no addition of a known object, no update of an unknown
// or unchanged one, and no deletion of an unknown one, or of one that exists and that all options select. In
// the end it has the selected objects of the server. Another subscriber receives all objects once.
func TestChangeHistories(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				h := &changeHistory{moveHistory: newMoveHistory(t, server, rand.New(rand.NewPCG(seed, 0)))}
				h.moveHistory.move = h.change
				objects := h.play()
				selects := h.selects[len(h.selects)-1]
				maps.DeleteFunc(objects, func(key, _ string) bool { return !selects(key) })
				if diff := cmp.Diff(objects, h.live); diff != "" || len(h.problems) > 0 {
					t.Errorf("the objects of the subscriber (-want +got):\n%s; wrong events: %q", diff, h.problems)
				}
			})
		})
	}
}
