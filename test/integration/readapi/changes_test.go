package readapi_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

var environments = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "environments"}

// TestWatchChanges makes the same changes on both servers and compares watches with several selectors.
func TestWatchChanges(t *testing.T) {
	p := newPair(t)
	selectors := []metav1.ListOptions{
		{}, {LabelSelector: "demo.crdcache.dev/continent=europe"}, {FieldSelector: "spec.stage=staging"},
		{FieldSelector: "metadata.name=nova"},
	}
	type stream struct{ real, ours watch.Interface }
	var streams []stream
	for _, options := range selectors {
		streams = append(streams, stream{startWatch(t, p.apiServer, options),
			startWatch(t, p.crdcache, options)})
	}

	client := dynamicFor(t, p.apiServer).Resource(environments)
	mirror := func(o *unstructured.Unstructured, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.storage.Apply(o); err != nil {
			t.Fatal(err)
		}
	}
	nova := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Environment", "metadata": map[string]any{"name": "nova"},
		"spec": map[string]any{"stage": "staging", "region": "moon"},
	}}
	ctx := t.Context()
	o, err := client.Create(ctx, nova, metav1.CreateOptions{})
	mirror(o, err)
	o.SetLabels(map[string]string{"demo.crdcache.dev/continent": "europe"}) // enters the second selection
	o, err = client.Update(ctx, o, metav1.UpdateOptions{})
	mirror(o, err)
	_ = unstructured.SetNestedField(o.Object, "production", "spec", "stage") // leaves the third
	o, err = client.Update(ctx, o, metav1.UpdateOptions{})
	mirror(o, err)
	same, err := client.Update(ctx, o, metav1.UpdateOptions{}) // no change
	mirror(same, err)
	o.SetLabels(nil) // leaves the second
	o, err = client.Update(ctx, o, metav1.UpdateOptions{})
	mirror(o, err)
	if err := client.Delete(ctx, "nova", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.storage.Delete(environments.GroupResource(), "", "nova")

	for i, s := range streams {
		t.Run(fmt.Sprintf("%+v", selectors[i]), func(t *testing.T) {
			want, got := readUntilDeleted(t, s.real), readUntilDeleted(t, s.ours)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-API server +crdcache):\n%s", diff)
			}
			if len(want) < 2 {
				t.Errorf("only %d events to compare", len(want))
			}
		})
	}
}

func dynamicFor(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// startWatch starts a watch at the current version.
func startWatch(t *testing.T, config *rest.Config, options metav1.ListOptions) watch.Interface {
	t.Helper()
	client := dynamicFor(t, config).Resource(environments)
	list, err := client.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	options.ResourceVersion = list.GetResourceVersion()
	w, err := client.Watch(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// readUntilDeleted returns the events, without their versions, up to the last deletion in the selection.
func readUntilDeleted(t *testing.T, w watch.Interface) []any {
	t.Helper()
	var all []any
	for {
		select {
		case event, ok := <-w.ResultChan():
			if !ok {
				t.Fatalf("the watch ended after %v", all)
			}
			u := event.Object.(*unstructured.Unstructured)
			u.SetResourceVersion("")
			all = append(all, string(event.Type), u.Object)
			if event.Type == watch.Deleted {
				return all
			}
		case <-t.Context().Done():
			t.Fatalf("timeout before the deletion, after %v", all)
		}
	}
}
