package dynamicinformer

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// twoValues returns two different values of a field of ResourceOptions, which are not zero. A field of a new
// type must be added here.
func twoValues(t *testing.T, field reflect.StructField) (a, b reflect.Value) {
	t.Helper()
	pair := func(a, b any) (reflect.Value, reflect.Value) { return reflect.ValueOf(a), reflect.ValueOf(b) }
	switch reflect.New(field.Type).Interface().(type) {
	case *Namespaces:
		return pair(InNamespaces("a"), AllNamespaces())
	case *VersionPolicy:
		return pair(PreferredVersion(), PinnedVersion())
	case *Storage:
		return pair(Storage{Mode: StorageObject}, Storage{Mode: StoragePacked})
	case **Shard:
		return pair(NewShard(sharding.ByUID), Unsharded())
	case **Selectors:
		return pair(NewSelectors(), NewSelectors(Selector{Label: labels.SelectorFromSet(labels.Set{"a": "b"})}))
	case *Keep:
		return pair(Keep{Paths: []string{}}, Keep{Paths: []string{".a"}})
	case *Prune:
		return pair(Prune{Presets: []PrunePreset{}}, Prune{Annotations: []string{"a"}})
	case *labels.Selector:
		return pair(labels.SelectorFromSet(labels.Set{"a": "b"}), labels.Everything())
	case *[]Selector:
		return pair([]Selector{{Label: labels.SelectorFromSet(labels.Set{"a": "b"})}}, []Selector{})
	case *fields.Selector:
		return pair(fields.OneTermEqualSelector("a", "b"), fields.Everything())
	case **time.Duration:
		return pair(new(time.Minute), new(time.Duration(0)))
	case *time.Duration:
		return pair(time.Hour, time.Minute)
	case *int64:
		return pair(int64(1), int64(2))
	case **bool:
		return pair(new(true), new(false))
	case *IndexSet:
		return pair(indexNames("a"), indexNames("b"))
	case *cache.Indexers:
		return pair(cache.Indexers{"a": cache.MetaNamespaceIndexFunc},
			cache.Indexers{"b": cache.MetaNamespaceIndexFunc})
	case *func(schema.GroupVersionResource, *metav1.ListOptions):
		return pair(func(schema.GroupVersionResource, *metav1.ListOptions) {},
			func(_ schema.GroupVersionResource, o *metav1.ListOptions) { o.Limit = 0 })
	case *cache.TransformFunc:
		return pair(cache.TransformFunc(func(any) (any, error) { return nil, nil }),
			cache.TransformFunc(func(obj any) (any, error) { return obj, nil }))
	}
	t.Fatalf("add two values for the field %s of type %s to twoValues", field.Name, field.Type)
	return a, b
}

// equalValues compares two values of a field. It compares functions by address.
func equalValues(a, b reflect.Value) bool {
	if a.Kind() == reflect.Func {
		return a.Pointer() == b.Pointer()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// TestResourceMergesEveryField sets each field in the options, in the defaults and in both, so that no new
// field is forgotten.
func TestResourceMergesEveryField(t *testing.T) {
	of := reflect.TypeFor[ResourceOptions]()
	for field := range of.Fields() {
		t.Run(field.Name, func(t *testing.T) {
			a, b := twoValues(t, field)
			with := func(v reflect.Value) ResourceOptions {
				var o ResourceOptions
				reflect.ValueOf(&o).Elem().FieldByIndex(field.Index).Set(v)
				return o
			}
			value := func(o ResourceOptions) reflect.Value {
				return reflect.ValueOf(o).
					FieldByIndex(field.Index)
			}
			if got := value(with(a).withDefaults(ResourceOptions{})); !equalValues(got, a) {
				t.Errorf("a value without a default became %v, want %v", got, a)
			}
			if got := value(ResourceOptions{}.withDefaults(with(a))); !equalValues(got, a) {
				t.Errorf("an unset value became %v, want the default %v", got, a)
			}
			if field.Type == reflect.TypeFor[cache.Indexers]() {
				return // TestIndexersAddUp covers these
			}
			for _, both := range [][2]reflect.Value{{a, b}, {b, a}} {
				if got := value(with(both[0]).withDefaults(with(both[1]))); !equalValues(got, both[0]) {
					t.Errorf("the value %v with the default %v became %v, want the value", both[0], both[1],
						got)
				}
			}
		})
	}
}

// TestResourcePrecedence verifies that overrides take precedence over the type's own options, and these over
// the defaults.
func TestResourcePrecedence(t *testing.T) {
	o := Options{
		Defaults: ResourceOptions{Namespaces: InNamespaces("default"), LabelSelector: labels.Nothing(),
			Resync: new(time.Second)},
		Resources: map[schema.GroupVersionResource]ResourceOptions{
			widgets: {Namespaces: InNamespaces("type"), LabelSelector: labels.Everything()},
		},
	}
	got := o.resource(widgets, ResourceOptions{Namespaces: InNamespaces("first")},
		ResourceOptions{Namespaces: AllNamespaces()})
	if got.Namespaces.String() != "all" || got.LabelSelector.String() != "" || *got.Resync != time.Second ||
		got.Indexers[cache.NamespaceIndex] == nil {
		t.Errorf("the merged options are %+v, want those of the overrides, then the type, then the defaults",
			got)
	}
	if got := o.resource(gadgets).Namespaces.String(); got != "in default" {
		t.Errorf("Namespaces of a type without its own options = %s, want the default", got)
	}
}

func TestResyncIsSpread(t *testing.T) {
	o := ResourceOptions{Resync: new(time.Hour)}
	var all []time.Duration
	for range 50 {
		all = append(all, o.resync())
	}
	if least, most := slices.Min(all), slices.Max(all); least < time.Hour || most > time.Hour*11/10 ||
		least == most {
		t.Errorf("the periods are between %v and %v, want different ones from 1h to 1h6m", least, most)
	}
	if got := (ResourceOptions{Resync: new(time.Duration(0))}).resync(); got != 0 {
		t.Errorf("resync() of a zero period = %v, want 0", got)
	}
}

func TestIndexersAddUp(t *testing.T) {
	mark := func(s string) cache.IndexFunc { return func(any) ([]string, error) { return []string{s}, nil } }
	defaults := ResourceOptions{Indexers: cache.Indexers{"a": mark("default"), "b": mark("default")}}
	got := ResourceOptions{Indexers: cache.Indexers{"b": mark("own"),
		"c": mark("own")}}.withDefaults(defaults).Indexers
	values := map[string]string{}
	for name, f := range got {
		v, _ := f(nil)
		values[name] = v[0]
	}
	want := map[string]string{"a": "default", "b": "own", "c": "own"}
	if !reflect.DeepEqual(values, want) {
		t.Errorf("the index functions are %v, want %v", values, want)
	}
	if len(defaults.Indexers) != 2 {
		t.Errorf("withDefaults changed the default indexers: %v", defaults.Indexers)
	}
}

// incomparable is a Compression that cannot be compared.
type incomparable struct {
	Compression
	_ []int
}

func TestNewChecksOptions(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	defaults := func(o ResourceOptions) Options { return Options{Config: config, Defaults: o} }
	forType := func(gvr schema.GroupVersionResource, o ResourceOptions) Options {
		return Options{Config: config, Resources: map[schema.GroupVersionResource]ResourceOptions{gvr: o}}
	}
	tests := map[string]struct {
		options Options
		want    []string // parts of the error; empty if no error is expected
	}{
		"client":                 {Options{Client: client}, nil},
		"config":                 {Options{Config: config}, nil},
		"config and http client": {Options{Config: config, HTTPClient: http.DefaultClient}, nil},
		"index": {defaults(
			ResourceOptions{Indexers: cache.Indexers{"x": cache.MetaNamespaceIndexFunc}}), nil},
		"no resync": {defaults(ResourceOptions{Resync: new(time.Duration(0))}), nil},
		"a type":    {forType(widgets, ResourceOptions{Namespaces: InNamespaces("a", "b")}), nil},
		"nothing":   {Options{}, []string{"Client or Config is required"}},
		"http client alone": {Options{HTTPClient: http.DefaultClient},
			[]string{"Client or Config is required"}},
		"client and config": {Options{Client: client, Config: config}, []string{"set either Client"}},
		"client and http client": {Options{Client: client, HTTPClient: http.DefaultClient},
			[]string{"set either Client"}},
		"invalid config": {Options{Config: &rest.Config{Host: "http://a b"}},
			[]string{"making a dynamic client"}},
		"negative concurrency": {Options{Config: config, ListConcurrency: -1},
			[]string{"ListConcurrency is -1"}},
		"nil index function": {defaults(ResourceOptions{Indexers: cache.Indexers{"x": nil}}),
			[]string{`Defaults: the index function "x" is nil`}},
		"reserved index": {defaults(
			ResourceOptions{Indexers: cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc}}),
			[]string{"cannot be replaced"}},
		"no namespaces": {defaults(ResourceOptions{Namespaces: InNamespaces()}),
			[]string{"list of namespaces is empty"}},
		"an empty namespace": {defaults(ResourceOptions{Namespaces: ExceptNamespaces("a", "")}),
			[]string{"empty name"}},
		"a pattern as a name": {defaults(ResourceOptions{Namespaces: InNamespaces("def*")}),
			[]string{`"def*" is a pattern`, "MatchingNamespaces"}},
		"a pattern as an except": {defaults(ResourceOptions{Namespaces: ExceptNamespaces("kube-*")}),
			[]string{`"kube-*" is a pattern`}},
		"an invalid namespace": {forType(widgets, ResourceOptions{Namespaces: InNamespaces("Bad/Name")}),
			[]string{`no namespace can have the name "Bad/Name"`}},
		"an invalid pattern": {defaults(ResourceOptions{Namespaces: MatchingNamespaces([]string{"a-*"},
			[]string{"B*"})}), []string{`no namespace can match "B*"`}},
		"a page size":       {defaults(ResourceOptions{PageSize: 100, MinWatchTimeout: 5 * time.Minute}), nil},
		"a negative budget": {Options{MemoryBudget: -1}, []string{"MemoryBudget is -1"}},
		"no compression": {defaults(ResourceOptions{Storage: Storage{Mode: StorageAdaptive}}),
			[]string{"storage/s2"}},
		"a negative page size": {defaults(ResourceOptions{PageSize: -1}),
			[]string{"Defaults: PageSize is -1"}},
		"a short watch": {forType(widgets, ResourceOptions{MinWatchTimeout: time.Minute}),
			[]string{"widgets.v1.example.com: MinWatchTimeout is 1m0s; it must be at least 5m0s"}},
		"a mode": {defaults(ResourceOptions{Storage: Storage{Mode: 77}}), []string{"Storage.Mode is 77"}},
		"a preset": {defaults(ResourceOptions{Prune: Prune{Presets: []PrunePreset{"all"}}}),
			[]string{`unknown preset "all"`}},
		"a path": {defaults(ResourceOptions{Prune: Prune{Paths: []string{"spec["}}}), []string{`"spec["`}},
		"an identity": {defaults(ResourceOptions{Prune: Prune{Paths: []string{"metadata.name"}}}),
			[]string{"identifies"}},
		"an incomparable compression": {defaults(ResourceOptions{Storage: Storage{Mode: StorageCompressed,
			Compression: incomparable{}}}), []string{"type dynamicinformer.incomparable is not comparable"}},
		"no source of types": {forType(widgets, ResourceOptions{Versions: PreferredVersion()}),
			[]string{
				"widgets.v1.example.com: a version policy other than PinnedVersion requires Options.Types"}},
		"a type without version": {forType(schema.GroupVersionResource{Resource: "x"}, ResourceOptions{}),
			[]string{"lacks a version"}},
		"a type without resource": {forType(schema.GroupVersionResource{Version: "v1"}, ResourceOptions{}),
			[]string{"lacks a version or a resource"}},
		"everything at once": {
			Options{ListConcurrency: -1, Defaults: ResourceOptions{Namespaces: InNamespaces()},
				Resources: map[schema.GroupVersionResource]ResourceOptions{
					widgets: {Indexers: cache.Indexers{"namespace": nil}},
					gadgets: {Resync: new(time.Duration(-1))},
				}},
			[]string{"Client or Config", "ListConcurrency", "Defaults: the list",
				"widgets.v1.example.com: the index", "gadgets.v1.example.com: option Resync is -1ns"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := New(tt.options)
			if tt.want == nil {
				if err != nil || f == nil {
					t.Fatalf("New = %v, %v; want a factory", f, err)
				}
				return
			}
			if err == nil || f != nil {
				t.Fatalf("New = %v, %v; want an error", f, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("New() = %q, want an error that contains %q", err, part)
				}
			}
		})
	}
}
