package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// changeHistory is a moveHistory of a subscription that changes.
type changeHistory struct {
	*moveHistory
	subscription *Subscription
	changed      time.Time
}

// change changes the options.
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
	if h.subscription != nil {
		h.subscription.Change(options[n])
		return
	}
	handle := func(name string) func(schema.GroupVersionResource, *unstructured.Unstructured, bool) {
		return func(_ schema.GroupVersionResource, u *unstructured.Unstructured, _ bool) { h.handle(name, u) }
	}
	var err error
	h.subscription, err = h.factory.Subscribe(wholeGroup, Subscriber{
		OnAdd: handle("add"), OnDelete: handle("delete"),
		OnUpdate: func(_ schema.GroupVersionResource, _, u *unstructured.Unstructured) { h.handle("update", u) },
	}, options[n])
	must(h.T, err)
}

// TestChangeHistories changes a subscription while objects change, and while the CRD is deleted, created,
// served and not served. The subscriber must receive no addition of a known object, no update of an unknown
// or unchanged one, and no deletion of an unknown one, or of one that exists and that all options select. In
// the end it has the selected objects of the server.
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
