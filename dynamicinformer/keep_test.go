package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
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
			for _, transform := range []cache.TransformFunc{nil,
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

// keepRed selects widgets that are whole in the tests.
var keepRed = Keep{Paths: []string{".spec.layers[*].name"}, WholeWhen: `@.spec.color == "red"`,
	WholeLabels: labels.SelectorFromSet(labels.Set{"team": "a"})}

// TestKeepWhole verifies that in every mode and with any client, objects that match keep all fields and the
// others the listed ones, from the event on at which they start or stop to match. Handlers receive the old
// object in its old form. Reads and the persisted content agree; another condition has another persisted
// content.
func TestKeepWhole(t *testing.T) {
	for with, options := range clients {
		for _, storage := range wholeObjectModes {
			t.Run(fmt.Sprint(with, "/", storage.Mode), func(t *testing.T) {
				t.Parallel()
				server := newServer(t)
				server.Create(t, widgets, widgetWithColor("web", "a", "green"))
				backend := newMemoryBackend()
				o := options(t, server)
				o.Persistence = backend
				resource := ResourceOptions{Storage: storage, Keep: keepRed,
					Prune: Prune{Presets: []PrunePreset{PruneManagedFields}}}
				o.Defaults = resource
				f, err := New(o)
				must(t, err)
				i := startSynced(t, f)
				events := make(chan string, 10)
				_, err = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
					AddFunc: func(obj any) { events <- storedForm(t, i, obj) },
					UpdateFunc: func(old, obj any) {
						events <- storedForm(t, i, old) + " to " + storedForm(t, i, obj)
					},
				})
				must(t, err)
				expect := func(want string) {
					t.Helper()
					if got := <-events; got != want {
						t.Errorf("the handler received %s, want %s", got, want)
					}
				}
				expect("reduced green")
				for _, step := range []struct{ team, color, want string }{
					{"a", "green", "reduced green to reduced green"}, {"a", "red", "reduced green to whole red"},
					{"a", "red", "whole red to whole red"}, {"b", "red", "whole red to reduced red"},
					{"a", "red", "reduced red to whole red"}, {"a", "blue", "whole red to reduced blue"},
					{"a", "red", "reduced blue to whole red"},
				} {
					u := widgetWithColor("web", "a", step.color)
					u.SetLabels(map[string]string{"team": step.team})
					u.SetAnnotations(map[string]string{"example.com/step": step.want})
					server.Update(t, widgets, u)
					expect(step.want)
					got, err := i.Lister().ByNamespace("web").Get("a")
					must(t, err)
					if form := storedForm(t, i, got); !strings.HasSuffix(step.want, " to "+form) {
						t.Errorf("%s, but reads are %s", step.want, form)
					}
				}
				must(t, i.Relist(longContext(t)))
				expect("whole red to whole red")
				server.Create(t, widgets, widgetWithColor("web", "b", "red")) // matches, but has no label
				expect("reduced red")
				must(t, f.Shutdown(longContext(t)))
				if with != "own client" {
					return // its content is not restored with another client
				}
				another := Keep{Paths: keepRed.Paths, WholeWhen: keepRed.WholeWhen}
				for name, keep := range map[string]Keep{"the same": keepRed, "another": another} {
					resource.Keep = keep
					next := resume(t, server, backend, resource)
					if relisted := next.countLists() > 0; relisted == (name == "the same") {
						t.Errorf("with %s condition, the type is listed: %v, want %v", name, relisted,
							!relisted)
					}
					for key, whole := range map[string]bool{"a": true, "b": name == "another"} {
						got, err := next.Lister().ByNamespace("web").Get(key)
						must(t, err)
						if form := storedForm(t, next.Informer, got); strings.HasPrefix(form, "whole") != whole {
							t.Errorf("with %s condition, %s is %s, want it whole: %v", name, key, form, whole)
						}
					}
				}
			})
		}
	}
}

// storedForm describes an object of a cache that keeps mine. It fails the test if IsWhole contradicts its
// fields.
func storedForm(t *testing.T, i *Informer, obj any) string {
	u := obj.(*unstructured.Unstructured)
	layers, _, _ := unstructured.NestedSlice(u.Object, "spec", "layers")
	_, hasSecret := layers[0].(map[string]any)["secret"]
	color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
	if i.IsWhole(u) != hasSecret || u.GetManagedFields() != nil {
		t.Errorf("IsWhole(%v) = %v, want %v, without managed fields", u.Object, i.IsWhole(u), hasSecret)
	}
	if hasSecret {
		return "whole " + color
	}
	return "reduced " + color
}

// TestGetLive verifies that the object has all fields, is transformed, and counted. The reads are limited.
func TestGetLive(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widgetWithColor("web", "a", "red"))
	limiter := flowcontrol.NewTokenBucketRateLimiter(1e-6, 4)
	transform := func(obj any) (any, error) {
		obj.(*unstructured.Unstructured).SetLabels(map[string]string{"transformed": "yes"})
		return obj, nil
	}
	i := started(t, Options{Config: server.Config(), LiveReadLimiter: limiter},
		ResourceOptions{Keep: Keep{Paths: []string{}}, Transform: transform})
	got, err := i.GetLive(t.Context(), "web", "a")
	must(t, err)
	u := got.(*unstructured.Unstructured)
	if color, _, _ := unstructured.NestedString(u.Object, "spec", "color"); color != "red" ||
		u.GetLabels()["transformed"] == "" {
		t.Errorf("GetLive() = %v, want the color red and the label of the transform", u.Object)
	}
	if object, err := i.GetLive(t.Context(), "web", "b"); !apierrors.IsNotFound(err) || object != nil {
		t.Errorf("GetLive() of a missing object = %v, %v, want nil, NotFound", object, err)
	}
	server.AddFaults(fault("/apis/example.com/v1/namespaces/web/widgets/a", "get", http.StatusInternalServerError))
	if _, err := i.GetLive(t.Context(), "web", "a"); !apierrors.IsInternalError(err) {
		t.Errorf("GetLive() after a failed request = %v, want InternalError", err)
	}
	server.Repair()
	limiter.Accept()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := i.GetLive(ctx, "web", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("GetLive() beyond the limit = %v, want context.Canceled", err)
	}
	c := i.counters()
	failures := 0
	for kind, n := range c.Failures {
		if kind.Verb == "get" {
			failures += int(n)
		}
	}
	if c.Requests["get"] != 3 || failures != 1 {
		t.Errorf("%d reads and %d failures, want 3 and 1", c.Requests["get"], failures)
	}
}

// TestKeepIsValidated verifies that invalid and contradictory options are rejected, and that more specific
// options replace others.
func TestKeepIsValidated(t *testing.T) {
	keep, prune := Keep{Paths: []string{".spec"}}, Prune{Paths: []string{".spec"}}
	for want, options := range map[string]ResourceOptions{
		"annotations of Prune are both set": {Keep: keep, Prune: prune},
		"* is not a key":                    {Prune: Prune{Paths: []string{".spec.*"}}},
		"the path must end in a key":        {Keep: Keep{Paths: []string{".spec[*]"}}},
		`a key in brackets needs quotes`:    {Keep: Keep{Paths: []string{".spec[x]"}}},
		`Keep: WholeWhen "@.a ==": `:        {Keep: Keep{WholeWhen: "@.a =="}},
		"can read any field":                {Keep: Keep{WholeWhen: "@..a"}},
		"and Transform":                     {Keep: keepRed, Transform: func(obj any) (any, error) { return obj, nil }},
		"with StorageMetadata":              {Keep: keepRed, Storage: Storage{Mode: StorageMetadata}},
	} {
		if err := options.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate: got the error %v, want %s", err, want)
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
	keys := map[persistence.View]bool{}
	all := []ResourceOptions{whole, empty, reduced, {Prune: prune}}
	for _, k := range []Keep{keepRed, {WholeLabels: keepRed.WholeLabels}, {WholeWhen: keepRed.WholeWhen},
		{WholeLabels: labels.Everything()}, {WholeLabels: labels.Nothing()}, {WholeWhen: "@.a"}} {
		all = append(all, ResourceOptions{Keep: k})
	}
	views := map[optionsKey]bool{}
	for _, o := range all {
		keys[o.view(widgets)], views[o.key()] = true, true
	}
	if len(keys) != len(all) || len(views) != len(all) {
		t.Errorf("options with other fields have equal keys: %v", keys)
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
		t.Error("EstimateKeep() with an invalid path succeeded, want an error")
	}
}

// TestKeepWholeWithOtherOptions verifies that after a list in any form, random changes and a relist, exactly
// the objects that match are whole, together with options that have their own way to request, filter,
// compress or check objects.
func TestKeepWholeWithOtherOptions(t *testing.T) {
	inTeams, err := labels.Parse("team in (a,b)")
	must(t, err)
	for name, o := range map[string]ResourceOptions{
		"list and watch":   {WatchBookmarks: new(bool)},
		"pages":            {WatchBookmarks: new(bool), PageSize: 3},
		"alternatives":     {AnyOf: []Selector{{Label: inTeams}}},
		"namespace":        {Namespaces: InNamespaces("web")},
		"verified":         {Verify: time.Millisecond},
		"compressed lists": {Storage: adaptive},
		"shard":            {Shard: NewShard(sharding.ByUID, sharding.Split(1)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, random := newServer(t), rand.New(rand.NewPCG(1, 2))
			changed := func(n int) *unstructured.Unstructured {
				u := widgetWithColor("web", fmt.Sprint("w", n), []string{"red", "blue"}[random.IntN(2)])
				u.SetLabels(map[string]string{"team": []string{"a", "b"}[random.IntN(2)]})
				return u
			}
			for n := range 20 {
				server.Create(t, widgets, changed(n))
			}
			o.Keep = keepRed
			if o.Storage.Mode == StorageAdaptive {
				o.Storage.CompressLists = true
			}
			i := started(t, Options{Config: server.Config(), MemoryBudget: 1}, o)
			check := func(step string) {
				t.Helper()
				must(t, i.Compress(longContext(t)))
				list, err := server.Client(t).Resource(widgets).List(t.Context(), metav1.ListOptions{})
				must(t, err)
				must(t, i.WaitForVersion(longContext(t), list.GetResourceVersion()))
				if i.Snapshot().Len() != len(list.Items) {
					t.Fatalf("%s: %d objects, want %d", step, i.Snapshot().Len(), len(list.Items))
				}
				for _, u := range list.Items {
					want := u.GetLabels()["team"] == "a" && u.Object["spec"].(map[string]any)["color"] == "red"
					stored, _ := i.Snapshot().Stored("web/" + u.GetName())
					if i.IsWhole(stored) != want {
						t.Errorf("%s: %s is whole: %v, want %v", step, u.GetName(), !want, want)
					}
					got, err := i.Lister().ByNamespace("web").Get(u.GetName())
					must(t, err)
					storedForm(t, i, got)
				}
			}
			check("list")
			for n := range 60 {
				server.Update(t, widgets, changed(n%20))
			}
			check("events")
			must(t, i.Relist(longContext(t)))
			check("relist")
		})
	}
}
