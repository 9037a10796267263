package dynamicinformer

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var wholeObjectModes = []Storage{
	{}, {Mode: StoragePacked}, {Mode: StorageCompressed,
		Compression: s2.New()}, adaptive, {Mode: StorageObject},
}

func widgetWithColor(namespace, name, color string) *unstructured.Unstructured {
	u := widget(namespace, name)
	u.SetLabels(map[string]string{"color": color})
	u.SetAnnotations(map[string]string{packed.LastApplied: "{}", "example.com/note": "kept"})
	u.Object["spec"] = map[string]any{"color": color, "layers": []any{
		map[string]any{"name": "base", "secret": "s"}, map[string]any{"name": "top", "secret": "t"},
	}}
	return u
}

// eventNotes is a handler that records its events as JSON.
type eventNotes struct {
	mu    sync.Mutex
	lines []string
	wrong []string
}

func (d *eventNotes) record(event string, objects ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line := event
	for _, obj := range objects {
		if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			line, obj = line+" "+lost.Key, lost.Obj
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			d.wrong = append(d.wrong, fmt.Sprintf("%s of a %T", event, obj))
			continue
		}
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		line += fmt.Sprintf(" %s %s/%s %s", u.GetKind(), u.GetNamespace(), u.GetName(), color)
	}
	d.lines = append(d.lines, line)
}

func (d *eventNotes) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	lines := d.lines
	d.lines = nil
	slices.Sort(lines)
	return append(lines, d.wrong...)
}

func (d *eventNotes) OnAdd(obj any, _ bool)      { d.record("add", obj) }
func (d *eventNotes) OnUpdate(before, after any) { d.record("update", before, after) }
func (d *eventNotes) OnDelete(obj any)           { d.record("delete", obj) }

// clients are factory options with a client of crdcache, and with a client of the user.
var clients = map[string]func(testing.TB, *apitest.Server) Options{
	"own client": func(_ testing.TB, s *apitest.Server) Options { return Options{Config: s.Config()} },
	"user's client": func(t testing.TB, s *apitest.Server) Options {
		client, err := dynamic.NewForConfig(s.Config())
		must(t, err)
		return Options{Client: client}
	},
}

// started starts a factory, and returns its informer of widgets when it has synced.
func started(t testing.TB, options Options, resource ResourceOptions) *Informer {
	t.Helper()
	options.Defaults = resource
	f, err := New(options)
	must(t, err)
	ctx := longContext(t)
	t.Cleanup(func() {
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return startSynced(t, f)
}

// TestModesReturnEqualObjects verifies that informers of every mode return the same objects as client-go's.
func TestModesReturnEqualObjects(t *testing.T) {
	for with, options := range clients {
		for _, storage := range wholeObjectModes {
			t.Run(with+"/"+storage.Mode.String(), func(t *testing.T) {
				server := newServer(t)
				server.Create(t, widgets, widgetWithColor("web", "a", "red"), widgetWithColor("web", "b", "blue"))
				i := started(t, options(t, server),
					ResourceOptions{Storage: storage, Indexers: cache.Indexers{
						"color": func(obj any) ([]string, error) {
							color, _,
								err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object,
								"spec", "color")
							return []string{color}, err
						},
					}})
				d := &eventNotes{}
				handle, err := i.AddEventHandler(d)
				must(t, err)
				if !cache.WaitForCacheSync(longContext(t).Done(), handle.HasSynced) {
					t.Fatal("timed out waiting for the handler's sync")
				}
				must(t, i.Compress(longContext(t)))
				expectLines(t, "initial list", d.take(), "add Widget web/a red", "add Widget web/b blue")

				client := server.Client(t).Resource(widgets).Namespace("web")
				ctx := longContext(t)
				b, err := client.Get(ctx, "b", metav1.GetOptions{})
				must(t, err)
				must(t, unstructured.SetNestedField(b.Object, "green", "spec", "color"))
				b.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update"}})
				_, err = client.Update(ctx, b, metav1.UpdateOptions{})
				must(t, err)
				must(t, client.Delete(ctx, "a", metav1.DeleteOptions{}))
				awaitLines(t, d, "delete Widget web/a red", "update Widget web/b blue Widget web/b green")

				must(t, i.Compress(longContext(t)))
				found, err := i.GetIndexer().ByIndex("color", "green")
				must(t, err)
				if len(found) != 1 || found[0].(*unstructured.Unstructured).GetName() != "b" {
					t.Errorf("the index has %v, want b", found)
				}
				obj, err := i.Lister().ByNamespace("web").Get("b")
				must(t, err)
				want, err := client.Get(ctx, "b", metav1.GetOptions{})
				must(t, err)
				if diff := cmp.Diff(want, obj); diff != "" {
					t.Errorf("the cache shows (-server +cache):\n%s", diff)
				}
			})
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectLines(t testing.TB, name string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// awaitLines waits for a number of events, and compares them.
func awaitLines(t testing.TB, d *eventNotes, want ...string) {
	t.Helper()
	await(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.lines) >= len(want)
	})
	expectLines(t, "events", d.take(), want...)
}

// TestMetadataOnlyDecodesNothing verifies that no object is decoded for a handler that reads metadata.
func TestMetadataOnlyDecodesNothing(t *testing.T) {
	for _, storage := range []Storage{{Mode: StoragePacked}, adaptive} {
		t.Run(storage.Mode.String(), func(t *testing.T) { testMetadataOnly(t, storage) })
	}
}

func testMetadataOnly(t *testing.T, storage Storage) {
	server := newServer(t)
	count := 1
	if server.Create(t, widgets, widgetWithColor("web", "a", "red")); storage == adaptive {
		count += manyWidgets(t, server)
	}
	i := started(t, Options{Config: server.Config()}, ResourceOptions{Storage: storage})
	must(t, i.Compress(t.Context()))
	if got := i.Stats().Compressed; storage == adaptive && got != count {
		t.Fatalf("%d of %d objects are compressed, want all", got, count)
	}
	var mu sync.Mutex
	var seen []string
	record := func(event string, obj any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
		must(t, err)
		m, err := meta.Accessor(obj)
		must(t, err)
		mu.Lock()
		defer mu.Unlock()
		if m.GetName() != "a" {
			return
		}
		seen = append(seen, fmt.Sprintf("%s %s %s %s %v", event, key, m.GetLabels()["color"],
			m.GetAnnotations()["example.com/note"], m.GetUID() != "" && m.GetResourceVersion() != "" &&
				m.GetCreationTimestamp() != (metav1.Time{}) && m.GetOwnerReferences() == nil))
	}
	_, err := i.AddEventHandler(EveryEvent(MetadataOnly(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { record("add", obj) },
		UpdateFunc: func(_, obj any) { record("update", obj) },
		DeleteFunc: func(obj any) { record("delete", obj) },
	})))
	must(t, err)
	client, ctx := server.Client(t).Resource(widgets).Namespace("web"), longContext(t)
	a := widgetWithColor("web", "a", "blue")
	have, err := client.Get(ctx, "a", metav1.GetOptions{})
	must(t, err)
	a.SetResourceVersion(have.GetResourceVersion())
	_, err = client.Update(ctx, a, metav1.UpdateOptions{})
	must(t, err)
	must(t, client.Delete(ctx, "a", metav1.DeleteOptions{}))
	await(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == 3
	})
	expectLines(t, "events", seen, "add web/a red kept true", "update web/a blue kept true",
		"delete web/a blue kept true")
	if stats := i.Stats(); stats.Misses != 0 || stats.Hits != 0 {
		t.Errorf("%d objects were decoded, want 0", stats.Misses)
	}
	if _, err := i.AddEventHandler(MetadataOnly(nil)); err == nil {
		t.Error("AddEventHandler() of a nil handler succeeded, want an error")
	}
}

func TestStorageModeText(t *testing.T) {
	for mode, name := range storageModes {
		var back StorageMode
		text, err := mode.MarshalText()
		if err != nil || string(text) != name {
			t.Errorf("mode %d: MarshalText() = %q, %v, want %s", mode, text, err, name)
		}
		if err := back.UnmarshalText(text); err != nil || back != mode {
			t.Errorf("UnmarshalText(%q) = mode %d, %v, want mode %d", text, back, err, mode)
		}
	}
	var mode StorageMode
	if err := mode.UnmarshalText([]byte("pack")); err == nil {
		t.Error("UnmarshalText() of an unknown mode succeeded, want an error")
	}
	if got := StorageMode(99).String(); got != "StorageMode(99)" {
		t.Errorf("String() of an unknown mode = %q, want StorageMode(99)", got)
	}
}
