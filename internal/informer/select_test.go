package informer

import (
	"slices"
	"testing"

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
