package controllerruntime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// letters is an index function that, for some objects, returns duplicate values, empty values or none.
func letters(o client.Object) []string {
	switch o.GetName() {
	case "none":
		return nil
	case "empty":
		return []string{"", ""}
	}
	return append(strings.Split(o.GetName(), ""), o.GetName()[:1])
}

func color(o client.Object) []string { return []string{o.GetLabels()["color"]} }

func listOptions() map[string]*client.ListOptions {
	red, _ := labels.Parse("color=red")
	notRed, _ := labels.Parse("color!=red,color")
	options := map[string]*client.ListOptions{}
	for _, namespace := range []string{"", "web", "we", "nowhere"} {
		for selectorIndex, selector := range []labels.Selector{nil, labels.Everything(),
			labels.Nothing(), red, notRed} {
			for _, field := range []fields.Selector{
				nil, fields.Everything(), fields.Nothing(), fields.ParseSelectorOrDie("letter=a"),
				fields.ParseSelectorOrDie("letter="),
				fields.ParseSelectorOrDie("letter=b,color=red"),
				fields.ParseSelectorOrDie("color=blue,letter=b"),
				fields.ParseSelectorOrDie("letter=a,letter=b"),
				fields.ParseSelectorOrDie("letter!=a"), fields.ParseSelectorOrDie("metadata.name=ab"),
			} {
				for _, limit := range []int64{0, 1, 3, -1} {
					options[fmt.Sprintf("%s %d %v %d", namespace, selectorIndex, field,
						limit)] = &client.ListOptions{Namespace: namespace, LabelSelector: selector,
						FieldSelector: field, Limit: limit}
				}
			}
		}
	}
	return options
}

// TestListsEqualStockCache verifies that both caches return the same objects and errors for all list options.
func TestListsEqualStockCache(t *testing.T) {
	server := newServer(t)
	for _, namespace := range []string{"web", "we", "db"} {
		for at, name := range []string{"a", "ab", "ba", "bb", "none", "empty", "c"} {
			u := configMap(namespace, name, "key", name)
			if at != 3 {
				u = labelled(u, map[string]string{"color": []string{"red", "blue"}[at%2]})
			}
			server.Create(t, configMaps, u)
		}
	}
	red, _ := labels.Parse("color=red")
	for name, options := range map[string]cache.Options{
		"all": {},
		"namespaces": {DefaultNamespaces: map[string]cache.Config{"web": {},
			"we": {LabelSelector: red, UnsafeDisableDeepCopy: new(true)}}},
		"all but": {DefaultNamespaces: map[string]cache.Config{"web": {LabelSelector: red},
			cache.AllNamespaces: {}}},
		"transform": {DefaultTransform: func(in any) (any, error) {
			in.(client.Object).SetAnnotations(map[string]string{"seen": "yes"})
			if in.(client.Object).GetName() == "ba" {
				in.(client.Object).SetLabels(map[string]string{"color": "red"})
			}
			return in, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ours := newCache(t, server, options, Options{})
			options.Mapper = newMapper()
			stock, err := cache.New(server.Config(), options)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []cache.Cache{ours, stock} {
				for _, form := range emptyForms() {
					for field, function := range map[string]client.IndexerFunc{"letter": letters,
						"color": color} {
						if err := c.IndexField(t.Context(), form, field, function); err != nil {
							t.Fatal(err)
						}
					}
				}
				start(t, c)
			}
			for form, list := range lists() {
				got, want := list.DeepCopyObject().(client.ObjectList),
					list.DeepCopyObject().(client.ObjectList)
				for selection, opts := range listOptions() { // reuses the lists
					compareLists(t, form+" "+selection, got, want, ours.List(t.Context(), got, opts),
						stock.List(t.Context(), want, opts), opts)
				}
			}
		})
	}
}

func compareLists(t *testing.T, name string, got, want client.ObjectList, err, wantErr error,
	opts *client.ListOptions) {
	t.Helper()
	if textOf(err) != textOf(wantErr) {
		t.Errorf("%s: error %v, want the stock cache's error %v", name, err, wantErr)
	}
	if wantErr != nil || err != nil {
		return
	}
	if opts.Limit > 0 { // which objects are returned is unspecified
		if n, m := meta.LenList(got), meta.LenList(want); n != m {
			t.Errorf("%s: %d objects, want the stock cache's %d", name, n, m)
		}
		return
	}
	if diff := cmp.Diff(sortedItems(t, want), sortedItems(t, got)); diff != "" {
		t.Errorf("%s (-stock +ours):\n%s", name, diff)
	}
}

func sortedItems(t *testing.T, list client.ObjectList) []runtime.Object {
	t.Helper()
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	key := func(o runtime.Object) string { return client.ObjectKeyFromObject(o.(client.Object)).String() }
	slices.SortFunc(items, func(a, b runtime.Object) int { return strings.Compare(key(a), key(b)) })
	return items
}

// TestListOnlyType verifies that a type that cannot be watched, such as NodeMetrics, is listed like in the
// stock cache, and polled.
func TestListOnlyType(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, object(widgetKind, "web", "a"))
	path := "/apis/example.com/v1/widgets"
	server.AddFaults(apitest.Fault{Path: path, Verb: "watch", Status: 405},
		apitest.Fault{Path: path, Verb: "watch-list", Status: 405})
	for _, newCache := range []cache.NewCacheFunc{cache.New, NewCache} {
		c, err := newCache(server.Config(), cache.Options{Mapper: newMapper()})
		if err != nil {
			t.Fatal(err)
		}
		start(t, c)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
		if err := c.List(t.Context(), list); err != nil || len(list.Items) == 0 {
			t.Errorf("%T: List() = %d objects, %v", c, len(list.Items), err)
		}
		before := len(list.Items)
		server.Create(t, widgets, object(widgetKind, "web", fmt.Sprintf("b%d", before)))
		eventually(t, "the poll", func() bool {
			return c.List(t.Context(), list) == nil && len(list.Items) == before+1
		})
	}
}
