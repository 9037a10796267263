package informer

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

func namesOf(objects []any) []string {
	names := []string{}
	for _, obj := range objects {
		names = append(names, obj.(*unstructured.Unstructured).GetName())
	}
	slices.Sort(names)
	return names
}

func TestSelect(t *testing.T) {
	labelled := func(name, namespace, color string) *unstructured.Unstructured {
		o := object(name, 1)
		o.SetNamespace(namespace)
		o.SetLabels(map[string]string{"color": color})
		return o
	}
	for format, options := range map[string]Options{
		"object":           {},
		"packed":           {Format: store.NewPacked(nil, nil)},
		"without an index": {Indexers: cache.Indexers{}},
	} {
		t.Run(format, func(t *testing.T) {
			f := newFeed(t, options)
			f.list(1, labelled("a", "x", "red"), labelled("b", "x", "blue"), labelled("c", "y", "blue"),
				object("d", 1))
			blue := labels.SelectorFromSet(labels.Set{"color": "blue"})
			unset, err := labels.Parse("!color")
			f.ok(err)
			for _, tc := range []struct {
				what string
				got  []any
				want []string
			}{
				{"all", f.Select(labels.Everything()), []string{"a", "b", "c", "d"}},
				{"none", f.Select(labels.Nothing()), []string{}},
				{"blue", f.Select(blue), []string{"b", "c"}},
				{"without", f.Select(unset), []string{"d"}},
				{"in x", f.SelectIn("x", labels.Everything()), []string{"a", "b"}},
				{"blue in x", f.SelectIn("x", blue), []string{"b"}},
				{"in none", f.SelectIn("none", labels.Everything()), []string{}},
			} {
				expect(t, tc.what, namesOf(tc.got), tc.want)
			}
		})
	}
}

// undecodedLog is an Undecoded handler that logs keys and resource versions.
type undecodedLog struct{ eventLog }

func (*undecodedLog) TakesUndecoded() {}

func (*undecodedLog) CoalescesEvents() bool { return false }

func (k *undecodedLog) OnAdd(obj any, initial bool) {
	k.write("add %s %v", keyAndVersion(obj), initial)
}

func (k *undecodedLog) OnUpdate(before, after any) {
	k.write("update %s %s", keyAndVersion(before), keyAndVersion(after))
}

func (k *undecodedLog) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		k.write("lost %s %s", lost.Key, keyAndVersion(lost.Obj))
		return
	}
	k.write("delete %s", keyAndVersion(obj))
}

func keyAndVersion(obj any) string {
	if _, decoded := obj.(*unstructured.Unstructured); decoded {
		return "decoded"
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err.Error()
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(key, m.GetResourceVersion())
}

// TestUndecodedHandlers checks that Undecoded handlers receive items, and that no object is decoded.
func TestUndecodedHandlers(t *testing.T) {
	format := store.NewPacked(nil, nil)
	f := newFeed(t, Options{Format: format})
	log := &undecodedLog{}
	_, err := f.AddEventHandler(log)
	f.ok(err)
	f.list(1, object("a", 1), object("b", 1))
	f.put(object("a", 2))
	f.delete(object("a", 3))
	f.list(4)
	f.flush()
	expect(t, "events", log.take(), []string{"add ns/a1 true", "add ns/b1 true", "update ns/a1 ns/a2",
		"delete ns/a3", "lost ns/b ns/b1"})
	if hits, misses := format.Decodes(); hits != 0 || misses != 0 {
		t.Errorf("%d objects were decoded by %d reads, want 0", misses, hits+misses)
	}
}
