package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/query"
)

// handlerStub is an informer that lets the test call its handler.
type handlerStub struct{ cache.ResourceEventHandler }

func (h *handlerStub) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	h.ResourceEventHandler = handler
	return nil, nil
}

func (h *handlerStub) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// TestSubscription verifies that a subscription reports the objects on which an expression fails, and
// continues with their next change.
func TestSubscription(t *testing.T) {
	for text, want := range map[string][]string{
		"self.names.all(a, self.names.all(b, a.size() + b.size() > 0))": {
			"Added a", "Deleted a", "Failed a: cost limit exceeded", "Added a", "Deleted a", "Failed a: no such key",
			"Failed b: no such key"},
		"!(has(self.names) && self.names.exists(a, self.names.exists(b, a + b == '')))": {
			"Added a", "Deleted a", "Failed a: cost limit exceeded", "Added a", "Modified a", "Added b", "Deleted a"},
		"self.names == self.names || self.names.size() > 1": {"Added a", "Modified a", "Modified a", "Deleted a",
			"Failed a: no such key", "Failed b: no such key"},
	} {
		q := query.WhereCEL(text)
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			q = query.Not(query.WhereCEL(rest))
		}
		matcher, err := query.NewMatcher(q)
		if err != nil {
			t.Fatal(err)
		}
		informer, got := &handlerStub{}, []string{}
		if _, err := query.Subscribe(informer, matcher, func(e query.Event) {
			line := fmt.Sprint(e.Type, " ", e.Key)
			for _, cause := range []string{"cost limit exceeded", "no such key"} {
				if e.Err != nil && strings.Contains(e.Err.Error(), " fails on "+e.Key+": ") &&
					strings.Contains(e.Err.Error(), cause) {
					line += ": " + cause
				}
			}
			got = append(got, line)
		}); err != nil {
			t.Fatal(err)
		}
		object := func(name string, names int, version string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name,
				"resourceVersion": version}}}
			if names > 0 {
				list := make([]any, names)
				for n := range list {
					list[n] = fmt.Sprint("n", n)
				}
				u.Object["names"] = list
			}
			return u
		}
		small, large, again, without := object("a", 2, "1"), object("a", 3000, "2"), object("a", 3, "3"),
			object("a", 0, "4")
		informer.OnAdd(small, true)
		informer.OnUpdate(small, large)
		informer.OnUpdate(large, large) // repeated
		informer.OnUpdate(large, again)
		informer.OnUpdate(again, without)
		informer.OnAdd(object("b", 0, "5"), false)
		informer.OnDelete(without)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
