package controllerruntime

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
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
			must(t, err)
			for _, c := range []cache.Cache{ours, stock} {
				for _, form := range emptyForms() {
					for field, function := range map[string]client.IndexerFunc{"letter": letters,
						"color": color} {
						must(t, c.IndexField(t.Context(), form, field, function))
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
	must(t, err)
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
		must(t, err)
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

// TestForeignTransforms verifies that as in the stock cache, reading an object that a transform converted to
// another type fails.
func TestForeignTransforms(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	c := newCache(t, server, cache.Options{DefaultTransform: func(in any) (any, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "a"}}, nil
	}}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err == nil {
			t.Errorf("%s: Get() of an object that is not a ConfigMap succeeded, want an error", name)
		}
	}
}

// addressList has fields that need encoding.TextUnmarshaler, and a small integer type.
type addressList struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Addresses         []netip.Addr `json:"addresses,omitempty"`
	IP                net.IP       `json:"ip,omitempty"`
	Small             int8         `json:"small,omitempty"`
}

func (a *addressList) DeepCopyObject() runtime.Object {
	out := *a
	a.DeepCopyInto(&out.ObjectMeta)
	out.Addresses, out.IP = slices.Clone(a.Addresses), slices.Clone(a.IP)
	return &out
}

// TestConvertedIsDecoded verifies that transformed objects, and objects that are stored decoded, become the
// same structs as from JSON.
func TestConvertedIsDecoded(t *testing.T) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgetKind, &addressList{})
	server := newServer(t)
	fits, large := object(widgetKind, "web", "fits"), object(widgetKind, "web", "large")
	fits.Object["addresses"], fits.Object["ip"], fits.Object["small"] = []any{"10.0.0.1",
		"::1"}, "10.0.0.2", int64(7)
	large.Object["small"] = int64(300)
	server.Create(t, widgets, fits, large)
	for name, tt := range map[string]struct {
		options      cache.Options
		cacheOptions Options
	}{
		"packed": {cache.Options{}, Options{}},
		"transformed": {cache.Options{DefaultTransform: func(in any) (any, error) { return in, nil }},
			Options{}},
		"decoded": {cache.Options{},
			Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.options.Scheme = scheme
			c := newCache(t, server, tt.options, tt.cacheOptions)
			start(t, c)
			var got addressList
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(fits), &got); err != nil ||
				fmt.Sprint(got.Addresses, got.IP, got.Small) != "[10.0.0.1 ::1] 10.0.0.2 7" {
				t.Errorf("Get() = %v with %v, %v, %d; want [10.0.0.1 ::1], 10.0.0.2, 7", err, got.Addresses,
					got.IP, got.Small)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(large), &got); err == nil ||
				!strings.Contains(err.Error(), "web/large does not fit") {
				t.Errorf("Get() of an object that does not fit = %[2]v with the value %[1]d, want an error",
					got.Small, err)
			}
		})
	}
}

// TestStripManagedFieldsIsPruning checks that only controller-runtime's transform is replaced by pruning.
func TestStripManagedFieldsIsPruning(t *testing.T) {
	if !convert.StripsManagedFields(cache.TransformStripManagedFields()) {
		t.Error("TransformStripManagedFields is not recognized")
	}
	if convert.StripsManagedFields(func(in any) (any, error) { return in, nil }) {
		t.Error("another transform is recognized as TransformStripManagedFields")
	}
	server := newServer(t)
	u := configMap("web", "a")
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "test", Operation: "Update",
		FieldsType: "FieldsV1", FieldsV1: fieldsV1(`{}`)}})
	server.Create(t, configMaps, u)
	c := newCache(t, server, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
			len(form.GetManagedFields()) != 0 {
			t.Errorf("%s: Get() = %v with the managed fields %v, want none", name, err,
				form.GetManagedFields())
		}
	}
	if options := c.Factory().Stats()[0].Options; options != "pruned; storage: adaptive" &&
		options != "pruned; storage: metadata" {
		t.Errorf("Options = %q, want pruned", options)
	}
}

// TestTransformsGetTheirForm verifies that as in the stock cache, transforms receive objects of the readers'
// form.
func TestTransformsGetTheirForm(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	c := newCache(t, server, cache.Options{DefaultTransform: func(in any) (any, error) {
		form := "unknown"
		switch in.(type) {
		case *corev1.ConfigMap:
			form = "typed"
		case *unstructured.Unstructured:
			form = "unstructured"
		case *metav1.PartialObjectMetadata:
			form = "metadata"
		}
		in.(client.Object).SetLabels(map[string]string{"form": form})
		return in, nil
	}}, Options{})
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
			form.GetLabels()["form"] != name {
			t.Errorf("%s: Get() = %v with the labels %v, want the ones of its transform", name, err,
				form.GetLabels())
		}
		if got := form.GetObjectKind().GroupVersionKind(); got != configMapKind {
			t.Errorf("%s: the kind is %s, want ConfigMap", name, got)
		}
	}
	var typed corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &typed); err != nil ||
		typed.Data["key"] != "value" || typed.UID == "" {
		t.Errorf("Get() = %v: %+v", err, typed)
	}
}

// fieldsV1 is metav1.NewFieldsV1, which apimachinery has since 0.36.
func fieldsV1(text string) *metav1.FieldsV1 {
	f := &metav1.FieldsV1{}
	if err := f.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return f
}
