package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// keepsTitle keeps one key of the data, unless the object has the label.
var keepsTitle = dynamicinformer.Keep{Paths: []string{".data.title"},
	WholeLabels: labels.SelectorFromSet(labels.Set{"mine": "yes"})}

// reducedModes are the default, and the mode without packed objects.
var reducedModes = []dynamicinformer.Storage{{}, {Mode: dynamicinformer.StorageObject}}

// newReduced returns a server with a reduced ConfigMap "a" and a whole one, and a started cache.
func newReduced(t *testing.T, options cache.Options, cacheOptions Options) (*apitest.Server, *Cache) {
	t.Helper()
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "title", "A", "text", "long"),
		labelled(configMap("web", "whole", "title", "W", "text", "long"), map[string]string{"mine": "yes"}))
	c := newCache(t, server, options, cacheOptions)
	start(t, c)
	return server, c
}

// contentOf returns the data, and "marked" for a reduced object.
func contentOf(t *testing.T, object runtime.Object) string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	must(t, err)
	marked := ""
	if IsReduced(object.(client.Object)) {
		marked = " marked"
	}
	return fmt.Sprint(fields["data"], marked)
}

const (
	wholeA   = "map[text:long title:A]"
	reducedA = "map[title:A] marked"
	wholeW   = "map[text:long title:W]"
)

// TestReducedGet verifies that Get reads a reduced object from the API server, fails, or returns it marked,
// as copy and as shared object; a list never reads from the server and marks the reduced objects.
func TestReducedGet(t *testing.T) {
	wanted := map[ReducedGet]string{reducedGetUnset: wholeA, GetFails: "", GetReduced: reducedA}
	for policy, want := range wanted {
		for _, storage := range reducedModes {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprint(policy, storage.Mode, shared), func(t *testing.T) {
					server, c := newReduced(t, cache.Options{DefaultUnsafeDisableDeepCopy: &shared,
						DefaultTransform: cache.TransformStripManagedFields()},
						Options{Keep: keepsTitle, ReducedGet: policy, Storage: storage})
					for form, object := range emptyForms() {
						if form == "metadata" {
							continue
						}
						for range 2 { // of two shared objects, the first is decoded
							err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, object)
							var reduced *ReducedError
							if errors.As(err, &reduced) != (want == "") || err != nil && want != "" ||
								err == nil && contentOf(t, object) != want {
								t.Errorf("%s: got %s, %v, want %s", form, contentOf(t, object), err, want)
							}
							gets := len(requestsOf(server, "get"))
							if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "whole"},
								object); err != nil || contentOf(t, object) != wholeW {
								t.Errorf("%s: Get of the whole object = %s, %v, want %s", form, contentOf(t,
									object), err, wholeW)
							}
							list := lists()[form]
							must(t, c.List(t.Context(), list))
							if got := contentsOf(t, list); got["a"] != reducedA || got["whole"] != wholeW {
								t.Errorf("%s: List has %v, want a reduced and whole complete", form, got)
							}
							if n := len(requestsOf(server, "get")); n != gets {
								t.Errorf("%s: the whole object and the list took %d requests, want 0", form, n-gets)
							}
						}
					}
				})
			}
		}
	}
}

// contentsOf returns the contentOf each item of a list, by name.
func contentsOf(t *testing.T, list client.ObjectList) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, item := range itemsOf(t, list) {
		all[item.GetName()] = contentOf(t, item)
	}
	return all
}

// itemsOf returns pointers to the items of a list.
func itemsOf(t *testing.T, list client.ObjectList) (items []client.Object) {
	t.Helper()
	err := meta.EachListItem(list, func(item runtime.Object) error {
		items = append(items, item.(client.Object))
		return nil
	})
	must(t, err)
	return items
}

// requestsOf returns the requests for a ConfigMap.
func requestsOf(server *apitest.Server, verb string) (found []string) {
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, verb+" ") && strings.Contains(request, "/configmaps/") {
			found = append(found, request)
		}
	}
	return found
}

// TestReducedMetadata verifies that readers of metadata get dropped annotations: from a watch of their own,
// or the API server if other forms share the informer.
func TestReducedMetadata(t *testing.T) {
	for otherForm, reads := range map[string]int{"metadata": 0, "typed": 1} {
		server := newServer(t)
		u := configMap("web", "b", "title", "B")
		u.SetAnnotations(map[string]string{"note": "n"})
		server.Create(t, configMaps, u)
		c := newCache(t, server, cache.Options{}, Options{Keep: keepsTitle})
		start(t, c)
		if _, err := c.GetInformer(t.Context(), emptyForms()[otherForm]); err != nil {
			t.Fatal(err)
		}
		got := emptyForms()["metadata"]
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"}, got))
		sent := requestsOf(server, "get")
		if got.GetAnnotations()["note"] != "n" || IsReduced(got) || len(sent) != reads {
			t.Errorf("with an informer of the %s form: annotations %v and the requests %q, want the note and %d requests",
				otherForm, got.GetAnnotations(), sent, reads)
		}
	}
}

// clientsOf returns the client of NewClient, the consistent one, and the client of a manager by default.
func clientsOf(t *testing.T, server *apitest.Server, c *Cache) map[string]client.Client {
	t.Helper()
	config := server.Config()
	config.ContentType = "application/json"
	options := func() client.Options {
		return client.Options{Mapper: newMapper(), Cache: &client.CacheOptions{Reader: c, Unstructured: true}}
	}
	guarded, err := NewClient(config, options())
	must(t, err)
	consistent, err := newCacheClient(config, options(), c, true)
	must(t, err)
	plain, err := client.New(config, options())
	must(t, err)
	return map[string]client.Client{"guarded": guarded, "consistent": consistent, "plain": plain}
}

// TestReducedObjectsAreNotWritten verifies that no client can write a reduced object back, typed or
// unstructured; patches change only their fields. The server checks a plain client.
func TestReducedObjectsAreNotWritten(t *testing.T) {
	server, c := newReduced(t, cache.Options{}, Options{Keep: keepsTitle, ReducedGet: GetReduced})
	key := client.ObjectKey{Namespace: "web", Name: "a"}
	text := func() string {
		stored := server.Client(t).Resource(configMaps).Namespace("web")
		u, err := stored.Get(t.Context(), "a", metav1.GetOptions{})
		must(t, err)
		if IsReduced(u) {
			t.Fatal("the write sent the mark of reduced objects to the server")
		}
		return contentOf(t, u)
	}
	for name, written := range clientsOf(t, server, c) {
		for form, object := range emptyForms() {
			if form == "metadata" {
				continue
			}
			t.Run(name+"/"+form, func(t *testing.T) {
				ctx := t.Context()
				awaitVersion(t, server, c)
				must(t, written.Get(ctx, key, object))
				created := object.DeepCopyObject().(client.Object)
				created.SetName("copied")
				created.SetResourceVersion("")
				merge := client.Merge
				raw := func() client.Patch {
					data, err := merge.Data(object)
					must(t, err)
					return client.RawPatch(types.MergePatchType, data)
				}
				for verb, err := range map[string]error{
					"update": written.Update(ctx, object.DeepCopyObject().(client.Object)),
					"create": written.Create(ctx, created), "merge": written.Patch(ctx, object, merge),
					"raw": written.Patch(ctx, object, raw()),
				} {
					var reduced *ReducedError
					if errors.As(err, &reduced) == (name == "plain") ||
						!apierrors.IsInvalid(err) && name == "plain" {
						t.Errorf("%s: got the error %v, want a ReducedError, or Invalid of the plain client",
							verb, err)
					}
				}
				if got := text(); got != wholeA {
					t.Fatalf("after refused writes, the server has %s, want %s", got, wholeA)
				}
				before := object.DeepCopyObject().(client.Object)
				object.SetLabels(map[string]string{"patched": name + form})
				must(t, written.Patch(ctx, object, client.MergeFrom(before)))
				if got := text(); got != wholeA {
					t.Fatalf("after a patch, the server has %s, want %s", got, wholeA)
				}
				if name == "plain" {
					return
				}
				if got := contentOf(t, object); got != wholeA {
					t.Fatalf("after a patch, the object is %s, want %s", got, wholeA)
				}
				if err := written.Update(ctx, object); err != nil {
					t.Errorf("update of the object that the patch has returned: %v", err)
				}
				if got := text(); got != wholeA {
					t.Fatalf("after an update, the server has %s, want %s", got, wholeA)
				}
			})
		}
	}
}

// awaitVersion waits until the cache has all ConfigMaps of the server, in their current versions.
func awaitVersion(t *testing.T, server *apitest.Server, c *Cache) {
	t.Helper()
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	list, err := server.Client(t).Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, i := range c.Factory().Informers() {
		must(t, i.WaitForVersion(t.Context(), list.GetResourceVersion()))
	}
}

// TestReducedLists verifies that a merge patch of a reduced object can replace a list, unless its elements
// are reduced.
func TestReducedLists(t *testing.T) {
	server := newServer(t)
	u := object(widgetKind, "web", "w")
	u.Object["spec"] = map[string]any{"parts": []any{map[string]any{"name": "n", "secret": "s"}},
		"sizes": []any{int64(1)}, "dropped": []any{"d"}}
	server.Create(t, widgets, u)
	c := newCache(t, server, cache.Options{}, Options{ReducedGet: GetReduced,
		Keep: dynamicinformer.Keep{Paths: []string{".spec.parts[*].name", ".spec.sizes"}}})
	start(t, c)
	guarded := clientsOf(t, server, c)["guarded"]
	var got, before *unstructured.Unstructured
	read := func() {
		got = object(widgetKind, "", "")
		must(t, guarded.Get(t.Context(), client.ObjectKeyFromObject(u), got))
		before = got.DeepCopy()
	}
	for field, reduced := range map[string]bool{"parts": true, "dropped": true, "sizes": false} {
		read()
		list, _, _ := unstructured.NestedSlice(got.Object, "spec", field)
		must(t, unstructured.SetNestedSlice(got.Object, append(list, "more"), "spec", field))
		got.SetFinalizers([]string{"example.com/" + field})
		err := guarded.Patch(t.Context(), got, client.MergeFrom(before))
		if (err != nil) != reduced || err != nil && !strings.Contains(err.Error(), field) {
			t.Errorf("Patch of %s: got the error %v, want one exactly for dropped fields", field, err)
		}
		status := guarded.Status().Patch(t.Context(), got, client.MergeFrom(before))
		if reduced && status == nil {
			t.Errorf("Patch of the status with %s returned no error", field)
		}
	}
	read()
	must(t, unstructured.SetNestedSlice(got.Object, []any{"more"}, "spec", "parts"))
	for name, settings := range map[string]TypeSettings{
		"all fields":   {Prune: dynamicinformer.Prune{Paths: []string{}}},
		"other fields": {Keep: dynamicinformer.Keep{Paths: []string{".spec.parts"}}},
	} {
		must(t, c.SetTypeSettings(t.Context(), got, settings))
		if err := guarded.Patch(t.Context(), got, client.MergeFrom(before)); err == nil {
			t.Errorf("Patch of an object that was read before the cache had %s returned no error", name)
		}
	}
}

// markLedger records contentOf of each object of a handler.
type markLedger struct {
	t      *testing.T
	events chan string
}

func (l markLedger) OnAdd(object any, _ bool) { l.record("add", object) }
func (l markLedger) OnUpdate(old, object any) { l.record("update", old, object) }
func (l markLedger) OnDelete(object any) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	l.record("delete", object)
}

func (l markLedger) record(event string, objects ...any) {
	for _, object := range objects {
		event += " " + contentOf(l.t, object.(runtime.Object).DeepCopyObject())
	}
	l.events <- event
}

// metadataLedger is a markLedger that reads only metadata, so it receives objects that are not decoded.
type metadataLedger struct{ markLedger }

// ReadsOnlyMetadata implements MetadataReader.
func (metadataLedger) ReadsOnlyMetadata() {}

// TestHandlersReceiveMarks verifies that handlers of each form receive marked objects, and unmarked ones
// after the cache has switched to whole objects; the objects that they received before do not change.
func TestHandlersReceiveMarks(t *testing.T) {
	for _, storage := range reducedModes {
		for form, example := range emptyForms() {
			for _, onlyMetadata := range []bool{false, true} {
				if form == "metadata" {
					continue
				}
				t.Run(fmt.Sprint(storage.Mode, form, onlyMetadata), func(t *testing.T) {
					server := newServer(t)
					server.Create(t, configMaps, configMap("web", "a", "title", "A", "text", "long"))
					c := newCache(t, server, cache.Options{}, Options{Keep: keepsTitle, Storage: storage})
					start(t, c)
					i, err := c.GetInformer(t.Context(), example)
					must(t, err)
					ledger := markLedger{t, make(chan string, 10)}
					var handler toolscache.ResourceEventHandler = ledger
					if onlyMetadata {
						handler = metadataLedger{ledger}
					}
					if _, err := i.AddEventHandler(handler); err != nil {
						t.Fatal(err)
					}
					expect := func(want string) {
						t.Helper()
						if got := <-ledger.events; got != want {
							t.Errorf("the handler received %s, want %s", got, want)
						}
					}
					expect("add " + reducedA)
					mine := map[string]string{"mine": "yes"}
					server.Update(t, configMaps,
						labelled(configMap("web", "a", "title", "A", "text", "long"), mine))
					expect("update " + reducedA + " " + wholeA)
					server.Update(t, configMaps, configMap("web", "a", "title", "A", "text", "long"))
					expect("update " + wholeA + " " + reducedA)
					set := TypeSettings{Prune: dynamicinformer.Prune{Paths: []string{}}}
					must(t, c.SetTypeSettings(t.Context(), example, set))
					server.Create(t, configMaps, configMap("web", "b", "title", "A", "text", "long"))
					expect("add " + wholeA)
					must(t, c.SetTypeSettings(t.Context(), example, TypeSettings{}))
					server.Delete(t, configMaps, "web", "b")
					expect("delete " + reducedA)
				})
			}
		}
	}
}

// TestReducedSettings verifies that the policy of a type applies at once, and invalid ones are refused.
func TestReducedSettings(t *testing.T) {
	_, c := newReduced(t, cache.Options{}, Options{Keep: keepsTitle})
	for policy, want := range map[ReducedGet]string{GetReduced: reducedA, GetLive: wholeA} {
		settings := TypeSettings{ReducedGet: policy}
		must(t, c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, settings))
		got := &corev1.ConfigMap{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, got)
		if err != nil || contentOf(t, got) != want {
			t.Errorf("policy %d: Get = %s, %v; want %s", policy, contentOf(t, got), err, want)
		}
	}
	keeps := TypeSettings{Keep: keepsTitle, Prune: dynamicinformer.Prune{Paths: []string{}}}
	for _, settings := range []TypeSettings{{ReducedGet: 7}, keeps} {
		if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, settings); err == nil {
			t.Errorf("SetTypeSettings(%+v) returned no error", settings)
		}
	}
	if err := (Options{Keep: keeps.Keep, Prune: keeps.Prune}).validate(); err == nil {
	}
}

// TestLiveReadsAreLimited verifies that QPS and Burst of the config limit them, and a context ends the wait.
func TestLiveReadsAreLimited(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "title", "A"))
	config := server.Config()
	config.QPS, config.Burst = 1e-6, 2
	c, err := New(config, cache.Options{Mapper: newMapper()}, Options{Keep: keepsTitle})
	must(t, err)
	start(t, c)
	get := func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "a"}, &corev1.ConfigMap{})
	}
	for range 2 {
		must(t, get(t.Context()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Get() beyond the limit = %v, want context.Canceled", err)
	}
}
