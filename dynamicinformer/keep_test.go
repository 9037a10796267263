package dynamicinformer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// TestKeep verifies that the cache has only the listed fields and the fields that every object has: with any
// client, in each storage mode, for transforms, after the list and after an event. Other informers do not
// share these reduced objects.
func TestKeep(t *testing.T) {
	keep := Keep{Paths: []string{".spec.layers[*].name", `.metadata.annotations["example.com/note"]`}}
	project := func(u *unstructured.Unstructured) map[string]any {
		metadata := u.Object["metadata"].(map[string]any)
		delete(metadata, "managedFields")
		metadata["annotations"] = map[string]any{"example.com/note": "kept"}
		u.Object["spec"] = map[string]any{"layers": []any{map[string]any{"name": "base"},
			map[string]any{"name": "top"}}}
		return u.Object
	}
	for with, options := range clients {
		for _, storage := range wholeObjectModes {
			for _, transform := range []cache.TransformFunc{nil, StripManagedFields,
				func(obj any) (any, error) { return obj, nil }} {
				t.Run(fmt.Sprint(with, "/", storage.Mode, "/transform=", transform != nil), func(t *testing.T) {
					server := newServer(t)
					server.Create(t, widgets, widgetWithColor("web", "a", "red"))
					i := started(t, options(t, server), ResourceOptions{Storage: storage, Keep: keep,
						Transform: transform})
					for _, color := range []string{"green", "blue"} {
						server.Update(t, widgets, widgetWithColor("web", "a", color))
						want, err := server.Client(t).Resource(widgets).Namespace("web").Get(t.Context(), "a",
							metav1.GetOptions{})
						must(t, err)
						must(t, i.WaitForVersion(longContext(t), want.GetResourceVersion()))
						got, err := i.Lister().ByNamespace("web").Get("a")
						must(t, err)
						if diff := cmp.Diff(project(want),
							got.(*unstructured.Unstructured).Object); diff != "" {
							t.Errorf("the cache (-want +got):\n%s", diff)
						}
					}
				})
			}
		}
	}
}

// TestKeepIsValidated verifies that invalid and contradictory options are rejected, and that more specific
// options replace others.
func TestKeepIsValidated(t *testing.T) {
	keep, prune := Keep{Paths: []string{".spec"}}, Prune{Paths: []string{".spec"}}
	for want, options := range map[string]ResourceOptions{
		"Keep and Prune are both set":    {Keep: keep, Prune: prune},
		"* is not a key":                 {Prune: Prune{Paths: []string{".spec.*"}}},
		"the path must end in a key":     {Keep: Keep{Paths: []string{".spec[*]"}}},
		`path ".spec[x]": expected * or`: {Keep: Keep{Paths: []string{".spec[x]"}}},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if o := (ResourceOptions{Keep: keep}).withDefaults(ResourceOptions{Prune: prune}); o.Prune.isSet() {
		t.Error("the default Prune is used together with Keep")
	}
	if o := (ResourceOptions{}).withDefaults(ResourceOptions{Keep: keep}); !o.Keep.isSet() {
		t.Error("the default Keep is ignored")
	}
	whole, empty := ResourceOptions{}, ResourceOptions{Keep: Keep{Paths: []string{}}}
	reduced := ResourceOptions{Keep: keep}
	keys := map[string]bool{}
	for _, o := range []ResourceOptions{whole, empty, reduced, {Prune: prune}} {
		keys[o.persistenceKey(widgets)] = true
	}
	if len(keys) != 4 || whole.key() == empty.key() || empty.key() == reduced.key() {
		t.Errorf("options with different fields have equal keys: %v", keys)
	}
}

// TestEstimateKeep verifies that the estimate equals the sizes in caches with and without Keep.
func TestEstimateKeep(t *testing.T) {
	server, keep := newServer(t), Keep{Paths: []string{".spec.layers[*].name"}}
	for n := range 5 {
		server.Create(t, widgets, widgetWithColor("web", fmt.Sprint("w", n), "red"))
	}
	whole := started(t, Options{Config: server.Config()}, ResourceOptions{})
	kept := started(t, Options{Config: server.Config()}, ResourceOptions{Keep: keep})
	for _, sample := range []int{1, 5, 9} {
		size, keptSize, err := whole.Snapshot().EstimateKeep(keep, sample)
		must(t, err)
		if want := int(whole.Stats().ObjectBytes) / 5; size != want {
			t.Errorf("with a sample of %d, the size is %d, want %d", sample, size, want)
		}
		if want := int(kept.Stats().ObjectBytes) / 5; keptSize != want {
			t.Errorf("with a sample of %d, the kept size is %d, want %d", sample, keptSize, want)
		}
	}
	if _, _, err := whole.Snapshot().EstimateKeep(Keep{Paths: []string{".spec[x]"}}, 1); err == nil {
		t.Error("an invalid path is accepted")
	}
}
