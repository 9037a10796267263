package discovery_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
	Resource: "apiservices"}

// crdSpec describes a CRD. The first version is stored. Versions with the prefix "!" are not served.
type crdSpec struct {
	group, plural, kind, scope string
	label                      string // value of the label "test"
	shortNames                 []any
	versions                   []string
}

func (s crdSpec) name() string { return s.plural + "." + s.group }

func (s crdSpec) resource() schema.GroupResource {
	return schema.GroupResource{Group: s.group, Resource: s.plural}
}

func (s crdSpec) object() *unstructured.Unstructured {
	versions := []any{}
	for i, v := range s.versions {
		name, hidden := strings.CutPrefix(v, "!")
		versions = append(versions, map[string]any{
			"name": name, "served": !hidden, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		})
	}
	names := map[string]any{"plural": s.plural, "singular": strings.ToLower(s.kind), "kind": s.kind}
	if s.shortNames != nil {
		names["shortNames"] = s.shortNames
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": s.name(), "labels": map[string]any{"test": s.label}},
		"spec":     map[string]any{"group": s.group, "scope": s.scope, "names": names, "versions": versions},
	}}
}

func newAdminClient(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create creates an object. At the end of the test it deletes the object and waits for the deletion.
func create(t *testing.T, c dynamic.Interface, gvr schema.GroupVersionResource,
	o *unstructured.Unstructured) {
	t.Helper()
	t.Cleanup(func() {
		harness.Eventually(t, func(ctx context.Context) error {
			err := c.Resource(gvr).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s still exists; delete: %v", o.GetName(), err)
		})
	})
	if _, err := c.Resource(gvr).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, c dynamic.Interface, gvr schema.GroupVersionResource, name string) {
	t.Helper()
	if err := c.Resource(gvr).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createDefinitions installs definitions concurrently.
func createDefinitions(t *testing.T, c dynamic.Interface, specs []crdSpec) {
	t.Helper()
	work := make(chan crdSpec)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { // ends when specs are created
			for s := range work {
				if _, err := c.Resource(crd.GVR).Create(t.Context(), s.object(),
					metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, s := range specs {
		work <- s
	}
	close(work)
	wg.Wait()
}

// startTracker runs a tracker during the test and collects its events.
func startTracker(t *testing.T, config *rest.Config,
	options discovery.TrackerOptions) (*discovery.Tracker, *events) {
	t.Helper()
	tracker, err := discovery.NewTracker(config, options)
	if err != nil {
		t.Fatal(err)
	}
	e := &events{t: t, ch: make(chan discovery.Event, 100000)}
	tracker.Subscribe(func(event discovery.Event) { e.ch <- event })
	done := make(chan error, 1)
	ctx := t.Context()                       // ends before the cleanups
	go func() { done <- tracker.Run(ctx) }() // ends with ctx
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := tracker.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	e.receiveUntil(func(event discovery.Event) bool { return event.Action == discovery.Synced })
	return tracker, e
}

type events struct {
	t  *testing.T
	ch chan discovery.Event
}

// receiveUntil returns the events up to the first one that satisfies done.
func (e *events) receiveUntil(done func(discovery.Event) bool) []discovery.Event {
	e.t.Helper()
	patience, cancel := context.WithTimeout(e.t.Context(), 90*time.Second)
	defer cancel()
	var got []discovery.Event
	for {
		select {
		case event := <-e.ch:
			got = append(got, event)
			if done(event) {
				return got
			}
		case <-patience.Done():
			e.t.Fatalf("timeout before the event; got %v", summary(got))
		}
	}
}

// receiveOfTypeUntil returns the events of one type up to the first one that satisfies done.
func (e *events) receiveOfTypeUntil(gr schema.GroupResource,
	done func(discovery.Event) bool) []discovery.Event {
	e.t.Helper()
	var out []discovery.Event
	e.receiveUntil(func(event discovery.Event) bool {
		if event.Type.GroupResource != gr {
			return false
		}
		out = append(out, event)
		return done(event)
	})
	return out
}

func isEstablished(e discovery.Event) bool {
	return e.Action != discovery.Removed && e.Type.Established
}
func isRemoved(e discovery.Event) bool { return e.Action == discovery.Removed }

func summary(list []discovery.Event) []string {
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%s %s", e.Action, e.Type.GroupResource))
	}
	return out
}
