package typed

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// gizmo is the Go type of widgets in these tests.
type gizmo struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size  int            `json:"size"`
		Extra map[string]any `json:"extra,omitempty"`
	} `json:"spec"`
}

func sized(name string, size any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"spec": map[string]any{"size": size, "extra": map[string]any{"list": []any{"a"}}},
	}}
	u.SetNamespace("web")
	u.SetName(name)
	return u
}

// informerOf returns a synced informer of widgets for a server with the objects.
func informerOf(
	t *testing.T, options dynamicinformer.ResourceOptions, objects ...*unstructured.Unstructured,
) *dynamicinformer.Informer {
	t.Helper()
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	server.Create(t, widgets, objects...)
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: server.Config(), HTTPClient: server.HTTPClient(t), Defaults: options,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(func() {
		defer cancel()
		if err := factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := factory.WaitForSync(ctx, widgets); err != nil {
		t.Fatal(err)
	}
	return informer
}

// gizmoInformer returns an informer of three widgets. The widget named odd does not fit the type gizmo.
func gizmoInformer(t *testing.T, options dynamicinformer.ResourceOptions) *dynamicinformer.Informer {
	t.Helper()
	options.Indexers = cache.Indexers{"all": func(any) ([]string, error) { return []string{"yes"}, nil }}
	return informerOf(t, options, sized("a", int64(1)), sized("b", int64(2)), sized("odd", "large"))
}

func nameAndSize(all []*gizmo) map[string]int {
	got := map[string]int{}
	for _, g := range all {
		got[g.Namespace+"/"+g.Name] = g.Spec.Size
	}
	return got
}

func TestTypedReads(t *testing.T) {
	objects := As[gizmo](gizmoInformer(t, dynamicinformer.ResourceOptions{}))
	want := map[string]int{"web/a": 1, "web/b": 2}
	reads := map[string]func() ([]*gizmo, error){
		"all":       func() ([]*gizmo, error) { return objects.List("", labels.Everything()) },
		"namespace": func() ([]*gizmo, error) { return objects.List("web", labels.Everything()) },
		"index":     func() ([]*gizmo, error) { return objects.ByIndex("all", "yes") },
		"iterator": func() (all []*gizmo, err error) {
			for g, failure := range objects.All() {
				if failure != nil {
					err = errors.Join(err, failure)
					continue
				}
				all = append(all, g)
			}
			return all, err
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			all, err := read()
			if diff := cmp.Diff(want, nameAndSize(all)); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
			var misfit *ConversionError
			if !errors.As(err, &misfit) || misfit.Key != "web/odd" || misfit.GVR != widgets ||
				misfit.Type != reflect.TypeFor[gizmo]() {
				t.Errorf("the error is %#v, want a ConversionError for web/odd", err)
			}
			if text := err.Error(); !strings.HasPrefix(text,
				"widgets.v1.example.com web/odd does not fit typed.gizmo: ") || strings.Contains(text, "\n") {
				t.Errorf("the error text is %q, want one line that starts with the object", text)
			}
		})
	}
	for range objects.All() {
		break // the iterator must stop
	}
	if g, err := objects.Get("web", "b"); err != nil || g.Spec.Size != 2 {
		t.Errorf("Get() = %+v, %v, want size 2", g, err)
	}
	if _, err := objects.Get("web", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of a missing object = %v, want NotFound", err)
	}
	if _, err := objects.Get("", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("Get() without the namespace = %v, want NotFound", err)
	}
	if _, err := objects.Get("", "web/a"); !apierrors.IsNotFound(err) {
		t.Errorf("Get() with a key as name = %v, want NotFound", err)
	}
	if _, err := objects.ByIndex("none", ""); err == nil {
		t.Error("ByIndex() of an unknown index succeeded, want an error")
	}
	if all, err := objects.List("none", labels.Everything()); err != nil || all == nil || len(all) != 0 {
		t.Errorf("List() of an empty namespace = %v, %v, want an empty slice", all, err)
	}
}

// TestTypedIsTheCallers verifies that callers can change the results, also untyped ones.
func TestTypedIsTheCallers(t *testing.T) {
	decoded := dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}
	objects := As[gizmo](gizmoInformer(t, dynamicinformer.ResourceOptions{Storage: decoded}))
	for range 2 {
		g, err := objects.Get("web", "a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"list": []any{"a"}}, g.Spec.Extra); diff != "" {
			t.Errorf("extra (-want +got):\n%s", diff)
		}
		g.Spec.Extra["list"].([]any)[0] = "changed"
		g.Spec.Extra["new"] = 1
	}
}

func TestStrict(t *testing.T) {
	i := gizmoInformer(t, dynamicinformer.ResourceOptions{})
	type partial struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if p, err := As[partial](i).Get("web", "a"); err != nil || p.Metadata.Name != "a" {
		t.Errorf("Get() without Strict = %+v, %v, want a", p, err)
	}
	var misfit *ConversionError
	if _, err := As[partial](i, Strict()).Get("web", "a"); !errors.As(err, &misfit) ||
		!runtime.IsStrictDecodingError(misfit.Err) {
		t.Errorf("Get() with Strict = %v, want a strict decoding error", err)
	}
}

// TestConversionNeverPanics verifies that a type that no object can be converted to is an error.
func TestConversionNeverPanics(t *testing.T) {
	i := gizmoInformer(t, dynamicinformer.ResourceOptions{})
	fails := func(name string, err error) {
		t.Helper()
		var misfit *ConversionError
		if !errors.As(err, &misfit) || misfit.Key != "web/a" {
			t.Errorf("%s: the error is %v, want a ConversionError for web/a", name, err)
		}
	}
	_, err := As[struct {
		Spec chan int `json:"spec"`
	}](i).Get("web", "a")
	fails("channel", err)
	_, err = As[struct {
		Spec func() `json:"spec"`
	}](i).Get("web", "a")
	fails("func", err)
	_, err = As[int](i).Get("web", "a")
	fails("number", err)
	_, err = As[struct {
		Spec panicking `json:"spec"`
	}](i).Get("web", "a")
	fails("unmarshaller that panics", err)

	c := newConverter[gizmo](widgets, nil)
	if _, err := c.convert("text"); err == nil || !strings.Contains(err.Error(), "string") {
		t.Errorf("convert(text) = %v, want an error about the type", err)
	}
}

// panicking is a type whose UnmarshalJSON panics.
type panicking struct{}

func (*panicking) UnmarshalJSON([]byte) error { panic("no") }

func TestTypedHandler(t *testing.T) {
	adapter := &typedHandler[gizmo]{converter: newConverter[gizmo](widgets, nil)}
	adapter.OnAdd(sized("a", int64(1)), false) // the adapter has no function for additions
	adapter.OnLeftShard(sized("a", int64(1)))
	adapter.OnUpdate(sized("a", int64(1)), sized("a", int64(2)))
	adapter.OnDelete(sized("a", int64(1)))

	var got []string
	adapter.handler = Handler[gizmo]{
		OnAdd: func(g *gizmo, initial bool) { got = append(got, "add "+g.Name) },
		OnUpdate: func(before, after *gizmo) {
			if before == nil {
				got = append(got, "update from a misfit "+after.Name)
			} else {
				got = append(got, "update "+before.Name)
			}
		},
		OnDelete: func(g *gizmo, final bool) {
			if final {
				got = append(got, "delete "+g.Name)
			} else {
				got = append(got, "lost "+g.Name)
			}
		},
		OnLeftShard: func(g *gizmo) { got = append(got, "departed "+g.Name) },
		OnError:     func(err error) { got = append(got, "error") },
	}
	one, two, odd := sized("a", int64(1)), sized("a", int64(2)), sized("a", "large")
	adapter.OnAdd(one, true)
	adapter.OnAdd(odd, true)
	adapter.OnUpdate(one, two)
	adapter.OnUpdate(odd, two)
	adapter.OnUpdate(one, odd)
	adapter.OnDelete(one)
	adapter.OnDelete(cache.DeletedFinalStateUnknown{Key: "web/a", Obj: one})
	adapter.OnDelete(cache.DeletedFinalStateUnknown{Key: "web/a"})
	adapter.OnLeftShard(one)
	want := []string{
		"add a", "error", "update a", "update from a misfit a", "error", "delete a", "lost a",
		"error", "departed a",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	adapter.handler.OnError = nil
	adapter.OnAdd(odd, true) // logged, because the adapter has no error function
}

// TestTypedHandlerOfInformer verifies that the events of a real informer arrive converted. Objects that
// cannot be converted go to the error function.
func TestTypedHandlerOfInformer(t *testing.T) {
	objects := As[gizmo](gizmoInformer(t, dynamicinformer.ResourceOptions{}))
	events := make(chan string, 10)
	registration, err := objects.AddEventHandler(Handler[gizmo]{
		Name:    "sizes",
		OnAdd:   func(g *gizmo, _ bool) { events <- g.Name },
		OnError: func(error) { events <- "misfit" },
	})
	if err != nil {
		t.Fatal(err)
	}
	if handlers := objects.Informer().Handlers(); len(handlers) != 1 || handlers[0].Name != "sizes" {
		t.Errorf("Handlers() = %+v, want one named sizes", handlers)
	}
	var got []string
	for range 3 {
		got = append(got, <-events)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "misfit"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := objects.Informer().RemoveEventHandler(registration); err != nil {
		t.Error(err)
	}
}

// TestTypedAllDecodesOneAtATime verifies that objects that were not yielded yet are not decoded.
func TestTypedAllDecodesOneAtATime(t *testing.T) {
	i := informerOf(t, dynamicinformer.ResourceOptions{}, sized("a", int64(1)), sized("b", int64(2)),
		sized("c", int64(3)))
	yielded := 0
	for _, err := range As[struct{}](i).All() {
		if err != nil {
			t.Fatal(err)
		}
		yielded++
		decoded := 0 // less than yielded after garbage collections
		for _, object := range i.Snapshot().AllStored() {
			if object.(dynamicinformer.PackedObject).Decoded() != nil {
				decoded++
			}
		}
		if decoded > yielded {
			t.Errorf("%d objects were decoded after %d were yielded, want at most as many", decoded, yielded)
		}
	}
	if yielded != 3 {
		t.Errorf("%d objects were yielded, want 3", yielded)
	}
}
