package dynamicinformer

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// gizmo is what the tests take a widget for.
type gizmo struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size  int            `json:"size"`
		Extra map[string]any `json:"extra,omitempty"`
	} `json:"spec"`
}

func sized(name string, size any) *unstructured.Unstructured {
	u := widget("web", name)
	u.Object["spec"] = map[string]any{"size": size, "extra": map[string]any{"list": []any{"a"}}}
	return u
}

// gizmoInformer returns an informer of two widgets that are gizmos and one, called odd, that is not.
func gizmoInformer(t *testing.T, options Options) *Informer {
	t.Helper()
	server := newServer(t)
	server.Create(t, widgets, sized("a", int64(1)), sized("b", int64(2)), sized("odd", "large"))
	options.Defaults.Indexers = cache.Indexers{"all": func(any) ([]string, error) { return []string{"yes"}, nil }}
	return synced(t, newFactory(t, server, options))
}

func nameAndSize(all []*gizmo) map[string]int {
	got := map[string]int{}
	for _, g := range all {
		got[g.Namespace+"/"+g.Name] = g.Spec.Size
	}
	return got
}

func TestTypedReads(t *testing.T) {
	typed := As[gizmo](gizmoInformer(t, Options{}))
	want := map[string]int{"web/a": 1, "web/b": 2}
	reads := map[string]func() ([]*gizmo, error){
		"all":       func() ([]*gizmo, error) { return typed.List("", labels.Everything()) },
		"namespace": func() ([]*gizmo, error) { return typed.List("web", labels.Everything()) },
		"index":     func() ([]*gizmo, error) { return typed.ByIndex("all", "yes") },
		"iterator": func() (all []*gizmo, err error) {
			for g, failure := range typed.All() {
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
			if !errors.As(err, &misfit) || misfit.Key != "web/odd" || misfit.GVR != widgets || misfit.Type != reflect.TypeFor[gizmo]() {
				t.Errorf("the error is %#v", err)
			}
			if text := err.Error(); !strings.HasPrefix(text, "widgets.v1.example.com web/odd does not fit dynamicinformer.gizmo: ") || strings.Contains(text, "\n") {
				t.Errorf("the text is %q", text)
			}
		})
	}
	for range typed.All() {
		break // must not go on
	}
	if g, err := typed.Get("web", "b"); err != nil || g.Spec.Size != 2 {
		t.Errorf("Get = %+v, %v", g, err)
	}
	if _, err := typed.Get("web", "none"); !apierrors.IsNotFound(err) {
		t.Errorf("getting what is not there ends with %v", err)
	}
	if _, err := typed.Get("", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("getting without the namespace ends with %v", err)
	}
	if _, err := typed.Get("", "web/a"); !apierrors.IsNotFound(err) {
		t.Errorf("getting by a key ends with %v", err)
	}
	if _, err := typed.ByIndex("none", ""); err == nil {
		t.Error("reading an index that there is none of does not fail")
	}
	if all, err := typed.List("none", labels.Everything()); err != nil || all == nil || len(all) != 0 {
		t.Errorf("an empty namespace has %v, %v", all, err)
	}
}

// TestTypedIsTheCallers: what is returned may be changed, also where it is not typed.
func TestTypedIsTheCallers(t *testing.T) {
	typed := As[gizmo](gizmoInformer(t, Options{Defaults: ResourceOptions{Storage: Storage{Mode: StorageObject}}}))
	for range 2 {
		g, err := typed.Get("web", "a")
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

func TestMayAlias(t *testing.T) {
	type recursive struct {
		Next *recursive
		Size int
	}
	type hidden struct {
		Skipped any `json:"-"`
	}
	for _, tt := range []struct {
		value any
		want  bool
	}{
		{gizmo{}, true}, {metav1.ObjectMeta{}, false}, {map[string]any{}, true}, {[]map[string]string{}, false},
		{recursive{}, false}, {struct{ P *[]any }{}, true}, {hidden{}, false}, {struct{ A [1]any }{}, true},
	} {
		for range 2 { // found, and remembered
			if got := mayAlias(reflect.TypeOf(tt.value)); got != tt.want {
				t.Errorf("mayAlias(%T) = %v", tt.value, got)
			}
		}
	}
}

func TestStrict(t *testing.T) {
	i := gizmoInformer(t, Options{})
	type partial struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if p, err := As[partial](i).Get("web", "a"); err != nil || p.Metadata.Name != "a" {
		t.Errorf("without Strict: %+v, %v", p, err)
	}
	var misfit *ConversionError
	if _, err := As[partial](i, Strict()).Get("web", "a"); !errors.As(err, &misfit) || !runtime.IsStrictDecodingError(misfit.Err) {
		t.Errorf("with Strict, the error is %v", err)
	}
}

// TestConversionNeverPanics: what no object can be converted to is an error as well.
func TestConversionNeverPanics(t *testing.T) {
	i := gizmoInformer(t, Options{})
	fails := func(name string, err error) {
		t.Helper()
		var misfit *ConversionError
		if !errors.As(err, &misfit) || misfit.Key != "web/a" {
			t.Errorf("%s: the error is %v", name, err)
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
		Spec grumpy `json:"spec"`
	}](i).Get("web", "a")
	fails("unmarshaller that panics", err)

	c := newConverter[gizmo](widgets, nil)
	if _, err := c.object("text"); err == nil || !strings.Contains(err.Error(), "string") {
		t.Errorf("converting a string ends with %v", err)
	}
}

// grumpy has an unmarshaller that panics.
type grumpy struct{}

func (*grumpy) UnmarshalJSON([]byte) error { panic("no") }

func TestTypedHandler(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, sized("a", int64(1)), sized("odd", "large"))
	typed := As[gizmo](ask(t, newFactory(t, server, Options{}), widgets))
	events := make(chan string, 10)
	registration, err := typed.AddEventHandler(TypedHandler[gizmo]{
		OnAdd: func(g *gizmo, initial bool) {
			if initial {
				events <- "initial " + g.Name
			} else {
				events <- "add " + g.Name
			}
		},
		OnError: func(err error) {
			var misfit *ConversionError
			if errors.As(err, &misfit) {
				events <- "misfit " + misfit.Key
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := typed.Informer().RemoveEventHandler(registration); err != nil {
		t.Fatal(err)
	}
	adapter := &typedAdapter[gizmo]{convert: typed.convert}
	adapter.OnAdd(sized("a", int64(1)), false) // nobody is called
	adapter.OnUpdate(sized("a", int64(1)), sized("a", int64(2)))
	adapter.OnDelete(sized("a", int64(1)))

	var got []string
	adapter.handler = TypedHandler[gizmo]{
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
		OnError: func(err error) { got = append(got, "error") },
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
	want := []string{"add a", "error", "update a", "update from a misfit a", "error", "delete a", "lost a", "error"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	adapter.handler.OnError = nil
	adapter.OnAdd(odd, true) // only logged
}

// TestTypedHandlerOfInformer: a real informer's events arrive converted, and misfits where they belong.
func TestTypedHandlerOfInformer(t *testing.T) {
	typed := As[gizmo](gizmoInformer(t, Options{}))
	events := make(chan string, 10)
	if _, err := typed.AddEventHandler(TypedHandler[gizmo]{
		OnAdd:   func(g *gizmo, _ bool) { events <- g.Name },
		OnError: func(error) { events <- "misfit" },
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 3 {
		got = append(got, <-events)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"a", "b", "misfit"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func BenchmarkTyped(b *testing.B) {
	obj := sized("a", int64(1))
	obj.SetLabels(map[string]string{"app": "web", "tier": "front"})
	b.Run("convert", func(b *testing.B) {
		c := newConverter[gizmo](widgets, nil)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.object(obj); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = obj.DeepCopy()
		}
	})
}

// TestTypedAllDecodesOneAtATime: what has not been yielded yet has not been decoded either.
func TestTypedAllDecodesOneAtATime(t *testing.T) {
	i := kept(t, Storage{}, painted("web", "a", "red"), painted("web", "b", "blue"), painted("web", "c", "green"))
	decoded := func() (n int) {
		for _, object := range i.Snapshot().AllStored {
			if object.(PackedObject).Decoded() != nil {
				n++
			}
		}
		return n
	}
	yielded := 0
	for _, err := range As[struct{}](i).All() {
		must(t, err)
		yielded++
		if n := decoded(); n > yielded { // fewer when the collector has been
			t.Errorf("%d objects were decoded when %d had been yielded", n, yielded)
		}
	}
	if yielded != 3 {
		t.Errorf("%d objects", yielded)
	}
}
