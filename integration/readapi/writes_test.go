package readapi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// TestWritesAreReal makes the same writes on both servers and compares the answers and the events.
func TestWritesAreReal(t *testing.T) {
	harness.Require(t, harness.ErrorWording)
	definition := harness.NewCRD(harness.Group(t), "Gizmo")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	version := versions[0].(map[string]any)
	version["subresources"] = map[string]any{"status": map[string]any{}}
	if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	harness.InstallCRDs(t, definition)
	namespace := harness.Namespace(t)
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	if _, err := storage.Apply(definition); err != nil {
		t.Fatal(err)
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	gvr := schema.GroupVersionResource{Group: group, Version: version["name"].(string), Resource: plural}
	ours := readapi.Config(readapi.NewHandler(storage.Writer(apiserver.WriterOptions{}),
		readapi.HandlerOptions{}))
	want := transcript(t, harness.Config(t), gvr, namespace)
	if diff := cmp.Diff(want, transcript(t, ours, gvr, namespace)); diff != "" {
		t.Errorf("(-real +ours):\n%s", diff)
	}
}

// writer writes gizmos and records the answers.
type writer struct {
	t      *testing.T
	client dynamic.ResourceInterface
	gvr    schema.GroupVersionResource
	lines  []string
	last   *unstructured.Unstructured
}

// transcript makes many kinds of writes and returns the server's answers.
func transcript(t *testing.T, config *rest.Config, gvr schema.GroupVersionResource,
	namespace string) []string {
	t.Helper()
	w := &writer{t: t, client: dynamicFor(t, config).Resource(gvr).Namespace(namespace), gvr: gvr}
	ctx := t.Context()
	first := w.create("a", map[string]any{"spec": map[string]any{"n": int64(1)},
		"status": map[string]any{"ready": true}}, "example.com/f")
	follow, err := w.client.Watch(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Stop()
	w.create("a", nil)
	w.create("", nil)
	stale := w.last.DeepCopy()
	w.change("spec", func(u *unstructured.Unstructured) {
		set(u, int64(2), "spec", "n")
		set(u, true,
			"status", "x")
	})
	w.change("nothing", func(*unstructured.Unstructured) {})
	w.change("labels", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) })
	w.change("a time", func(u *unstructured.Unstructured) {
		u.SetCreationTimestamp(metav1.Unix(1,
			0))
		u.SetGeneration(70)
	})
	w.change("another uid", func(u *unstructured.Unstructured) { u.SetUID("x") })
	w.change("no version", func(u *unstructured.Unstructured) { u.SetResourceVersion("") })
	w.change("another name", func(u *unstructured.Unstructured) { u.SetName("b") })
	w.note("stale")(w.client.Update(ctx, stale, metav1.UpdateOptions{}))
	status := w.last.DeepCopy()
	set(status, int64(7), "spec", "n")
	set(status, false, "status", "ready")
	status.SetLabels(nil)
	w.note("status")(w.client.UpdateStatus(ctx, status, metav1.UpdateOptions{}))
	w.patch("merge", types.MergePatchType, `{"spec":{"n":3,"m":null}}`)
	w.patch("merge status", types.MergePatchType, `{"status":{"ready":true}}`)
	w.patch("merge status", types.MergePatchType, `{"status":{"ready":true},"spec":{"n":8}}`, "status")
	w.patch("json", types.JSONPatchType, `[{"op":"add","path":"/spec/l","value":[1]}]`)
	w.patch("a test that fails", types.JSONPatchType, `[{"op":"test","path":"/spec/n","value":9}]`)
	w.patch("no patch", types.JSONPatchType, `{}`)
	w.patch("old version", types.MergePatchType, `{"metadata":{"resourceVersion":"1"},"spec":{"n":4}}`)
	w.patch("strategic", types.StrategicMergePatchType, `{}`)
	w.note("delete")(nil, w.client.Delete(ctx, "a", metav1.DeleteOptions{}))
	w.note("deleting")(w.client.Get(ctx, "a", metav1.GetOptions{}))
	w.note("again")(nil, w.client.Delete(ctx, "a", metav1.DeleteOptions{}))
	w.change("late finalizer",
		func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"example.com/f", "example.com/g"}) })
	w.change("last finalizer", func(u *unstructured.Unstructured) { u.SetFinalizers(nil) })
	w.note("gone")(w.client.Get(ctx, "a", metav1.GetOptions{}))
	w.note("delete nothing")(nil, w.client.Delete(ctx, "a", metav1.DeleteOptions{}))
	w.create("b", nil)
	w.note("no finalizers")(nil, w.client.Delete(ctx, "b", metav1.DeleteOptions{}))
	for range 12 {
		event := <-follow.ResultChan()
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch says %v", event)
		}
		w.lines = append(w.lines, string(event.Type)+" "+describe(u))
		if event.Type == watch.Deleted && u.GetName() == "b" {
			break
		}
	}
	return w.lines
}

func set(u *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(u.Object, value, path...) // it is a map
}

// describe returns the fields of an object that do not depend on time.
func describe(u *unstructured.Unstructured) string {
	return fmt.Sprint(u.GetName(), " generation ", u.GetGeneration(), " ", u.GetLabels(), u.GetFinalizers(),
		u.Object["spec"], u.Object["status"],
		" deleting ", u.GetDeletionTimestamp() != nil, " uid ", u.GetUID() != "", " time ",
		u.GetCreationTimestamp().Unix() > 1)
}

// note records an answer.
func (w *writer) note(what string) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(u *unstructured.Unstructured, err error) *unstructured.Unstructured {
		line := what + ": "
		var status apierrors.APIStatus
		switch {
		case errors.As(err, &status):
			line += fmt.Sprint(status.Status().Code, " ", status.Status().Reason)
		case err != nil:
			line += err.Error()
		case u != nil:
			line += describe(u)
			w.last = u
		}
		w.lines = append(w.lines, line)
		return u
	}
}

func (w *writer) create(name string, content map[string]any,
	finalizers ...string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		u.Object[key] = value
	}
	u.SetAPIVersion(w.gvr.GroupVersion().String())
	u.SetKind("Gizmo")
	u.SetName(name)
	u.SetFinalizers(finalizers)
	before := w.last
	created := w.note("create " + name)(w.client.Create(context.Background(), u, metav1.CreateOptions{}))
	if before != nil && name != "a" {
		w.last = before
	}
	return created
}

func (w *writer) change(what string, change func(*unstructured.Unstructured)) {
	u := w.last.DeepCopy()
	change(u)
	w.note(what)(w.client.Update(context.Background(), u, metav1.UpdateOptions{}))
}

func (w *writer) patch(what string, kind types.PatchType, patch string, subresources ...string) {
	w.note(what)(w.client.Patch(context.Background(), "a", kind, []byte(patch), metav1.PatchOptions{},
		subresources...))
}
