package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/readapi"
)

var widgetsGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// writable returns a client that can write widgets, and the storage and handler that it uses.
func writable(t *testing.T) (dynamic.ResourceInterface, *Storage, http.Handler) {
	t.Helper()
	s := NewStorage(StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	h := readapi.NewHandler(s.Writer(WriterOptions{}), readapi.HandlerOptions{})
	client, err := dynamic.NewForConfig(readapi.Config(h))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(widgetsGVR).Namespace("default"), s, h
}

func must(t *testing.T) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(u *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
}

// TestWrites creates, changes and deletes an object, and compares each response with the event of a watch.
func TestWrites(t *testing.T) {
	ctx, ok := t.Context(), must(t)
	widgets, s, _ := writable(t)
	follow, err := widgets.Watch(ctx, metav1.ListOptions{ResourceVersion: s.ResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer follow.Stop()
	var seen []string
	step := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		event := <-follow.ResultChan()
		got := event.Object.(*unstructured.Unstructured)
		seen = append(seen, fmt.Sprint(event.Type, " ", got.GetGeneration()))
		if u != nil && (event.Type != watch.Deleted && got.GetResourceVersion() != u.GetResourceVersion()) {
			t.Errorf("the watch got %s %v, the response was %v", event.Type, got.Object, u.Object)
		}
		return u
	}

	created := step(ok(widgets.Create(ctx,
		testkit.Parse(
			t, "{apiVersion: example.com/v1, kind: Widget, metadata: {generateName: w-, finalizers: [example.com/f]}, spec: {color: red}, status: {ready: true}}"), metav1.CreateOptions{})))
	name := created.GetName()
	if !strings.HasPrefix(name, "w-") || len(name) != 7 || created.GetUID() == "" ||
		created.GetCreationTimestamp().Unix() <= 0 || created.Object["status"] != nil {
		t.Errorf("Create() = %v, want a generated name, a UID, a creation time and no status", created.Object)
	}

	changed := created.DeepCopy()
	_ = unstructured.SetNestedField(changed.Object, "green", "spec", "color")
	_ = unstructured.SetNestedField(changed.Object, true, "status", "ready")
	updated := step(ok(widgets.Update(ctx, changed, metav1.UpdateOptions{})))
	if updated.Object["status"] != nil {
		t.Errorf("Update() wrote the status: %v", updated.Object)
	}
	if _, err := widgets.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("Update() of an old version = %v, want a conflict", err)
	}
	if again := ok(widgets.Update(ctx, updated,
		metav1.UpdateOptions{})); again.GetResourceVersion() != updated.GetResourceVersion() {
		t.Error("Update() without a change returned another version")
	}

	status := updated.DeepCopy()
	_ = unstructured.SetNestedField(status.Object, true, "status", "ready")
	_ = unstructured.SetNestedField(status.Object, "blue", "spec", "color")
	status = step(ok(widgets.UpdateStatus(ctx, status, metav1.UpdateOptions{})))
	if color, _, _ := unstructured.NestedString(status.Object, "spec", "color"); color != "green" ||
		status.Object["status"] == nil {
		t.Errorf("UpdateStatus() = %v, want only the status changed", status.Object)
	}

	step(ok(widgets.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`),
		metav1.PatchOptions{})))
	patched := step(ok(widgets.Patch(ctx, name, types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/color","value":"gold"}]`), metav1.PatchOptions{})))
	if diff := cmp.Diff(map[string]string{"a": "b"}, patched.GetLabels()); diff != "" {
		t.Errorf("labels after a patch (-want +got):\n%s", diff)
	}
	step(ok(widgets.Patch(ctx, name, types.MergePatchType, []byte(`{"status":{"ready":false}}`),
		metav1.PatchOptions{}, "status")))

	if err := widgets.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	step(nil)
	leaving := ok(widgets.Get(ctx, name, metav1.GetOptions{}))
	if leaving.GetDeletionTimestamp() == nil {
		t.Errorf("Delete() with a finalizer did not set the deletion timestamp: %v", leaving.Object)
	}
	more := leaving.DeepCopy()
	more.SetFinalizers([]string{"example.com/f", "example.com/g"})
	if _, err := widgets.Update(ctx, more, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("adding a finalizer to a terminating object = %v, want Invalid", err)
	}
	step(ok(widgets.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{})))
	if _, err := widgets.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get() after the removal of the last finalizer = %v, want NotFound", err)
	}
	want := []string{"ADDED 1", "MODIFIED 2", "MODIFIED 2", "MODIFIED 2", "MODIFIED 3", "MODIFIED 3",
		"MODIFIED 4", "DELETED 4"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("events and generations (-want +got):\n%s", diff)
	}
}

// TestRefusedWrites verifies that writes that a kube-apiserver rejects are rejected with the same reason.
func TestRefusedWrites(t *testing.T) {
	ctx := t.Context()
	widgets, s, h := writable(t)
	apply(t, s, testkit.Widget("default", "a", "red"))
	object := func(text string) *unstructured.Unstructured { return testkit.Parse(t, text) }
	create := func(text string) func() error {
		return func() error {
			_, err := widgets.Create(ctx, object(text),
				metav1.CreateOptions{})
			return err
		}
	}
	patch := func(kind types.PatchType, text string) func() error {
		return func() error {
			_, err := widgets.Patch(ctx, "a", kind, []byte(text), metav1.PatchOptions{FieldManager: "m"})
			return err
		}
	}
	uid := types.UID("other")
	for name, tt := range map[string]struct {
		do     func() error
		reason metav1.StatusReason
	}{
		"there already":     {create(testkit.Widget("default", "a", "red")), metav1.StatusReasonAlreadyExists},
		"another namespace": {create(testkit.Widget("other", "b", "red")), metav1.StatusReasonBadRequest},
		"another kind": {create("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: b}}"),
			metav1.StatusReasonInvalid},
		"no name": {create("{apiVersion: example.com/v1, kind: Widget, metadata: {labels: {a: b}}}"),
			metav1.StatusReasonInvalid},
		"a version": {create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: b, resourceVersion: \"7\"}}"),
			metav1.StatusReasonUnknown},
		"odd labels": {create("{apiVersion: example.com/v1, kind: Widget, metadata: {name: b, labels: {a: 1}}}"),
			metav1.StatusReasonBadRequest},
		"update of nothing": {func() error {
			_, err := widgets.Update(ctx, object(testkit.Widget("default", "none", "red")), metav1.UpdateOptions{})
			return err
		}, metav1.StatusReasonNotFound},
		"update without a version": {func() error {
			_, err := widgets.Update(ctx, object(testkit.Widget("default", "a", "red")), metav1.UpdateOptions{})
			return err
		}, metav1.StatusReasonInvalid},
		"deletion of another": {func() error {
			return widgets.Delete(ctx, "a",
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		}, metav1.StatusReasonConflict},
		"deletion of nothing": {func() error { return widgets.Delete(ctx, "none", metav1.DeleteOptions{}) },
			metav1.StatusReasonNotFound},
		"deletion of all by a field that is none": {func() error {
			return widgets.DeleteCollection(ctx, metav1.DeleteOptions{},
				metav1.ListOptions{FieldSelector: "spec.none=a"})
		}, metav1.StatusReasonBadRequest},
		"odd dryRun": {func() error {
			_, err := widgets.Create(ctx, object(testkit.Widget("default", "b", "red")),
				metav1.CreateOptions{DryRun: []string{"Some"}})
			return err
		}, metav1.StatusReasonInvalid},
		"deletion with an odd dryRun": {func() error {
			return widgets.Delete(ctx, "a",
				metav1.DeleteOptions{DryRun: []string{"Some"}})
		}, metav1.StatusReasonInvalid},
		"server-side apply": {patch(types.ApplyPatchType, testkit.Widget("default", "a", "blue")),
			metav1.StatusReasonUnsupportedMediaType},
		"strategic merge": {patch(types.StrategicMergePatchType, "{}"),
			metav1.StatusReasonUnsupportedMediaType},
		"a patch that does not fit": {patch(types.JSONPatchType,
			`[{"op":"test","path":"/spec/color","value":"blue"}]`), metav1.StatusReasonInvalid},
		"a patch of another version": {patch(types.MergePatchType, `{"metadata":{"resourceVersion":"1"}}`),
			metav1.StatusReasonConflict},
		"a patch that is no patch": {patch(types.JSONPatchType, `{}`), metav1.StatusReasonBadRequest},
		"a patch that changes the uid": {patch(types.MergePatchType, `{"metadata":{"uid":"other"}}`),
			metav1.StatusReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.ResourceVersion()
			if err := tt.do(); err == nil || apierrors.ReasonForError(err) != tt.reason {
				t.Errorf("error %v with the reason %q, want %s", err, apierrors.ReasonForError(err),
					tt.reason)
			}
			if s.ResourceVersion() != before {
				t.Error("the refused writes changed the storage")
			}
		})
	}
	t.Run("dry run", func(t *testing.T) {
		before := s.ResourceVersion()
		all := []string{metav1.DryRunAll}
		if u, err := widgets.Create(ctx, object(testkit.Widget("default", "dry", "red")),
			metav1.CreateOptions{DryRun: all}); err != nil || u.GetUID() == "" {
			t.Errorf("Create() as a dry run = %v, %v, want an object with a UID", u, err)
		}
		if err := widgets.Delete(ctx, "a", metav1.DeleteOptions{DryRun: all}); err != nil ||
			s.ResourceVersion() != before {
			t.Errorf("Delete() as a dry run = %v, or it changed the storage", err)
		}
	})
	if a := testkit.Ask(handlerOf(s), http.MethodDelete,
		inDefaultPath+"/a"); a.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE on a read-only handler: %+v, want MethodNotAllowed", a)
	}
	if a := get(h, "/apis/example.com/v1"); !strings.Contains(a.Body, `"update"`) {
		t.Errorf("discovery does not have the verb update: %s", a.Body)
	}
}

// TestConcurrentWrites verifies that of concurrent updates of one version only one succeeds; concurrent
// patches all succeed.
func TestConcurrentWrites(t *testing.T) {
	ctx := context.Background()
	widgets, s, _ := writable(t)
	apply(t, s, testkit.Widget("default", "a", "red"))
	base := must(t)(widgets.Get(ctx, "a", metav1.GetOptions{}))
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			u := base.DeepCopy()
			u.SetAnnotations(map[string]string{"by": fmt.Sprint(i)})
			_, results[i] = widgets.Update(ctx, u, metav1.UpdateOptions{})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !apierrors.IsConflict(err) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d concurrent updates of one version succeeded, want 1", won)
	}
	for i := range 4 {
		wg.Go(func() {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"p%d":"x"}}}`, i)
			if _, err := widgets.Patch(ctx, "a", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := must(t)(widgets.Get(ctx, "a", metav1.GetOptions{})); len(after.GetAnnotations()) != 5 {
		t.Errorf("after concurrent patches, annotations = %v, want 5", after.GetAnnotations())
	}
}

// TestCollectionOfAnotherBackend verifies that a request for another backend is an error.
func TestCollectionOfAnotherBackend(t *testing.T) {
	_, s, _ := writable(t)
	_, other, _ := writable(t)
	for _, c := range []readapi.Collection{other.Collection(widgetResource), struct{ readapi.Collection }{}} {
		_, err := s.Writer(WriterOptions{}).Write(&readapi.WriteRequest{Collection: c})
		if err == nil || !strings.Contains(err.Error(), "another backend") {
			t.Errorf("Write() for a %T = %v, want an error about the backend", c, err)
		}
	}
}

// TestDeleteCollection verifies that the selected objects are deleted, or marked if they have finalizers.
// Others stay.
func TestDeleteCollection(t *testing.T) {
	ctx := t.Context()
	widgets, s, _ := writable(t)
	for name, color := range map[string]string{"a": "red", "b": "red", "c": "green"} {
		apply(t, s, testkit.Widget("default", name, color))
	}
	apply(t, s, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: d, namespace: default, labels: {color: red}, finalizers: [example.com/f]}}")
	apply(t, s, testkit.Widget("other", "a", "red"))
	before := s.ResourceVersion()
	selected := metav1.ListOptions{LabelSelector: "color=red"}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		selected); err != nil || s.ResourceVersion() != before {
		t.Errorf("DeleteCollection() as a dry run = %v with resource version %s, want nil and %s", err,
			s.ResourceVersion(), before)
	}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		t.Fatal(err)
	}
	list, err := widgets.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, w := range list.Items {
		if w.GetDeletionTimestamp() != nil {
			left = append(left, "marked")
		}
		left = append(left, w.GetName())
	}
	if diff := cmp.Diff("c marked d", strings.Join(left, " ")); diff != "" || s.Len(widgetResource) != 3 {
		t.Errorf("%d are left (-want +got):\n%s", s.Len(widgetResource), diff)
	}
}
