package controllerruntime_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// versionRecorder is a handler that records the version of each object, and checks that no event is lost or
// repeated.
type versionRecorder struct {
	t      *testing.T
	mu     sync.Mutex
	byName map[string]string
	// deleted is the number of deletions.
	deleted int
}

func (v *versionRecorder) record(event string, object any, exists bool) {
	if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	o := object.(client.Object)
	v.mu.Lock()
	defer v.mu.Unlock()
	if before, found := v.byName[o.GetName()]; found != exists || found && event == "update" &&
		before == o.GetResourceVersion() {
		v.t.Errorf("%s %s at version %s: the handler has version %q", event, o.GetName(),
			o.GetResourceVersion(), before)
	}
	v.byName[o.GetName()] = o.GetResourceVersion()
	if event == "delete" {
		delete(v.byName, o.GetName())
		v.deleted++
	}
}

func (v *versionRecorder) OnAdd(object any, _ bool) { v.record("add", object, false) }
func (v *versionRecorder) OnUpdate(_, object any)   { v.record("update", object, true) }
func (v *versionRecorder) OnDelete(object any)      { v.record("delete", object, true) }

// TestSetTypeSettings changes selectors while objects change, and moves objects between alternatives.
func TestSetTypeSettings(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	harness.InstallCRDs(t, harness.NewCRD(w.Group, "Widget"))
	shared := startCache(t, cache.Options{Scheme: w.scheme()}).(*controllerruntime.Cache)
	writer, err := client.New(harness.Config(t), client.Options{Scheme: w.scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := harness.Namespace(t)
	setLabels := func(name string, pairs labels.Set) {
		t.Helper()
		o := w.new(namespace, name, "red")
		err := client.IgnoreNotFound(writer.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		if err == nil {
			o.SetLabels(pairs)
			if o.GetUID() == "" {
				err = writer.Create(t.Context(), o)
			} else {
				err = writer.Update(t.Context(), o)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for k := range 20 {
		setLabels(fmt.Sprint("w", k), labels.Set{"team": fmt.Sprint("t", k%4)})
	}
	informer, err := shared.GetInformer(t.Context(), w.typed())
	if err != nil {
		t.Fatal(err)
	}
	received := &versionRecorder{t: t, byName: map[string]string{}}
	if _, err := informer.AddEventHandler(received); err != nil {
		t.Fatal(err)
	}
	awaitSelected := func(selected func(labels.Set) bool) {
		t.Helper()
		harness.Eventually(t, func(ctx context.Context) error {
			var all unstructured.UnstructuredList
			all.SetGroupVersionKind(w.WithKind("WidgetList"))
			if err := writer.List(ctx, &all, client.InNamespace(namespace)); err != nil {
				return err
			}
			want := map[string]string{}
			for _, o := range all.Items {
				if selected(o.GetLabels()) {
					want[o.GetName()] = o.GetResourceVersion()
				}
			}
			var cached widgetList
			if err := shared.List(ctx, &cached); err != nil || len(cached.Items) != len(want) {
				return fmt.Errorf("%d objects are cached, want %d: %w", len(cached.Items), len(want), err)
			}
			received.mu.Lock()
			defer received.mu.Unlock()
			if !maps.Equal(received.byName, want) {
				return fmt.Errorf("the handler has %v, want %v", received.byName, want)
			}
			return nil
		})
	}
	selector := func(text string) labels.Selector {
		parsed, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for k, text := range []string{"team=t1", "team in (t1,t2)", "team=t3", ""} {
		ended := make(chan error, 1)
		go func() { // ends with the change
			ended <- shared.SetTypeSettings(t.Context(), w.typed(), controllerruntime.TypeSettings{
				ByObject: cache.ByObject{Label: selector(text)}})
		}()
		for n := range 20 {
			setLabels(fmt.Sprint("w", n), labels.Set{"team": fmt.Sprint("t", (n+k)%4)})
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		awaitSelected(func(of labels.Set) bool { return selector(text).Matches(of) })
	}
	anyOf := []dynamicinformer.Selector{{Label: selector("team=t1")}, {Label: selector("special")}}
	err = shared.SetTypeSettings(t.Context(), w.typed(), controllerruntime.TypeSettings{AnyOf: anyOf})
	if err != nil {
		t.Fatal(err)
	}
	matches := func(of labels.Set) bool { return anyOf[0].Label.Matches(of) || anyOf[1].Label.Matches(of) }
	setLabels("w0", labels.Set{"team": "t1"})
	awaitSelected(matches)
	deletions := received.deleted
	for range 10 { // moves the object between the alternatives, in both directions
		setLabels("w0", labels.Set{"special": ""})
		setLabels("w0", labels.Set{"team": "t1"})
	}
	awaitSelected(matches)
	if received.deleted != deletions {
		t.Errorf("the handler received %d deletions of an object that moved between alternatives, want 0",
			received.deleted-deletions)
	}
	o := w.new(namespace, "w0", "red")
	if err := writer.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	setLabels("w0", labels.Set{"special": ""})
	awaitSelected(matches)
	if received.deleted != deletions+1 {
		t.Errorf("the handler received %d deletions of a recreated object, want 1",
			received.deleted-deletions)
	}
	// the server responds with 400
	err = shared.SetTypeSettings(t.Context(), w.typed(),
		controllerruntime.TypeSettings{ByObject: cache.ByObject{
			Field: fields.OneTermEqualSelector("spec.unknown", "x")}})
	if err == nil {
		t.Error("SetTypeSettings() with an unknown field succeeded, want an error")
	}
	setLabels("w1", labels.Set{"special": ""})
	awaitSelected(matches)
}
