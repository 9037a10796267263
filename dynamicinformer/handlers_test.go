package dynamicinformer

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestNamedHandlersAreUnwrapped verifies that naming a handler changes neither its arguments nor the objects
// that are decoded for it.
func TestNamedHandlersAreUnwrapped(t *testing.T) {
	if Named("n", nil) != nil {
		t.Error("Named(nil) is not nil")
	}
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	i := started(t, Options{Config: server.Config()}, ResourceOptions{})
	got := make(chan any, 2)
	add := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { got <- obj }}
	for _, handler := range []cache.ResourceEventHandler{Named("n", MetadataOnly(add)),
		MetadataOnly(Named("n", add))} {
		if _, err := i.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
		if o, ok := (<-got).(PackedObject); !ok || o.Decoded() != nil {
			t.Errorf("the handler got a %T, want an undecoded PackedObject", o)
		}
	}
	// which is never called
	if _, err := i.AddEventHandler(Named("n", cache.ResourceEventHandlerFuncs{})); err != nil {
		t.Fatal(err)
	}
	must(t, i.Flush(longContext(t)))
	if stats := i.Stats(); stats.Misses != 0 {
		t.Errorf("%d objects were decoded, want 0", stats.Misses)
	}
	if _, err := i.AddEventHandler(Named("n", add)); err != nil {
		t.Fatal(err)
	}
	if u, ok := (<-got).(*unstructured.Unstructured); !ok {
		t.Errorf("the handler got a %T, want *unstructured.Unstructured", u)
	}
}

// TestCoalesceAndEveryEvent verifies that the outermost of Coalesce and EveryEvent applies, in any order with
// other wrappers.
func TestCoalesceAndEveryEvent(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		release := make(chan struct{})
		slow := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release },
			UpdateFunc: func(any, any) {}}
		for _, handler := range []cache.ResourceEventHandler{
			slow, Coalesce(slow), MetadataOnly(slow), Named("n", EveryEvent(MetadataOnly(slow))),
			MetadataOnly(Named("n", EveryEvent(Coalesce(slow)))), Coalesce(EveryEvent(slow)),
		} {
			if _, err := i.AddEventHandler(handler); err != nil {
				t.Fatal(err)
			}
		}
		if Coalesce(nil) != nil || EveryEvent(nil) != nil {
			t.Error("Coalesce(nil) or EveryEvent(nil) is not nil")
		}
		start(t, f)
		synctest.Wait()
		for n := range 4 {
			o := widget("web", "a")
			o.SetAnnotations(map[string]string{"n": strconv.Itoa(n)})
			server.Update(t, widgets, o)
		}
		synctest.Wait()
		var depths []int
		var merged []int64
		for _, h := range i.Handlers() {
			depths, merged = append(depths, h.Depth), append(merged, h.Coalesced)
		}
		if diff := cmp.Diff([]int{5, 2, 2, 5, 5, 2}, depths); diff != "" {
			t.Errorf("events that wait (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{0, 3, 3, 0, 0, 3}, merged); diff != "" {
			t.Errorf("events that were merged (-want +got):\n%s", diff)
		}
		close(release)
	})
}

// TestPruneComesFirst verifies that neither the cache nor a transform sees pruned fields, with any client and
// in any mode.
func TestPruneComesFirst(t *testing.T) {
	prune := Prune{
		Presets: []PrunePreset{PruneManagedFields, PruneLastApplied}, Annotations: []string{"gone"},
		Paths: []string{".spec.layers[*].secret", ".metadata.labels.color"},
	}
	for with, options := range clients {
		for _, storage := range wholeObjectModes {
			for _, transformed := range []bool{false, true} {
				t.Run(fmt.Sprint(with, "/", storage.Mode, "/transform=", transformed), func(t *testing.T) {
					server := newServer(t)
					a := widgetWithColor("web", "a", "red")
					a.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update"}})
					server.Create(t, widgets, a)
					resource := ResourceOptions{Storage: storage, Prune: prune}
					if transformed {
						resource.Transform = func(obj any) (any, error) {
							u := obj.(*unstructured.Unstructured)
							if u.GetLabels()["color"] != "" {
								t.Error("the transform received pruned fields")
							}
							u.SetLabels(map[string]string{"transformed": "yes"})
							return u, nil
						}
					}
					i := started(t, options(t, server), resource)
					obj, err := i.Lister().ByNamespace("web").Get("a")
					must(t, err)
					u := obj.(*unstructured.Unstructured)
					labels := map[string]any{}
					if transformed {
						labels["transformed"] = "yes"
					}
					want := map[string]any{"color": "red", "layers": []any{map[string]any{"name": "base"},
						map[string]any{"name": "top"}}}
					if diff := cmp.Diff(want, u.Object["spec"]); diff != "" {
						t.Errorf("the body (-want +got):\n%s", diff)
					}
					metadata := u.Object["metadata"].(map[string]any)
					if diff := cmp.Diff(map[string]any{"example.com/note": "kept"},
						metadata["annotations"]); diff != "" {
						t.Errorf("the annotations (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(any(labels), metadata["labels"]); diff != "" {
						t.Errorf("the labels (-want +got):\n%s", diff)
					}
					if u.GetManagedFields() != nil {
						t.Error("the managed fields were not removed")
					}
				})
			}
		}
	}
}

func TestParsePrunePath(t *testing.T) {
	each := packed.Step{Each: true}
	key := func(k string) packed.Step { return packed.Step{Key: k} }
	for text, want := range map[string]packed.Path{
		".a":            {key("a")},
		"a.b":           {key("a"), key("b")},
		".a[*].b":       {key("a"), each, key("b")},
		`.a["x.y/z"].b`: {key("a"), key("x.y/z"), key("b")},
		`['it"s']`:      {key(`it"s`)},
		".a[*][*].b":    {key("a"), each, each, key("b")},
		".kubectl-x/y":  {key("kubectl-x/y")},
		"":              nil,
		".":             nil,
		"..a":           nil,
		".a.":           nil,
		".a[0]":         nil,
		".a[":           nil,
		`.a["b`:         nil,
		`.a["b"]c`:      nil,
		".a.*":          {{Key: "a"}, {Any: true}},
		".a]":           nil,
	} {
		path, err := packed.ParsePath(text)
		if want == nil && text != "" {
			if err == nil {
				t.Errorf("ParsePrunePath(%q) = %v, want an error", text, path)
			}
			continue
		}
		if diff := cmp.Diff(want, path); diff != "" || err != nil {
			t.Errorf("ParsePrunePath(%q): error %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// FuzzParsePrunePath verifies that the formatted text of a path parses to the same path.
func FuzzParsePrunePath(f *testing.F) {
	for _, text := range []string{".a.b", `.a["x.y"]`, ".a[*].b", "a", ".a[", `["`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := packed.ParsePath(text)
		if err != nil {
			return
		}
		again, err := packed.ParsePath(path.String())
		if diff := cmp.Diff(path, again); diff != "" || err != nil {
			t.Errorf("%q is formatted as %q, which is parsed with the error %v (-want +got):\n%s", text, path,
				err, diff)
		}
	})
}
