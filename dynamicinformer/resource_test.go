package dynamicinformer

import (
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
		return pair(cache.TransformFunc(StripManagedFields),
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
