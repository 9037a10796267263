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
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
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
	if diff := cmp.Diff("c marked d", strings.Join(left, " ")); diff != "" || len(s.mu.types[widgetResource].objects) != 3 {
		t.Errorf("%d are left (-want +got):\n%s", len(s.mu.types[widgetResource].objects), diff)
	}
}
