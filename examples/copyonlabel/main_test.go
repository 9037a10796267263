package main

import (
	"context"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/crdcache/crdcache/test/testcluster"
)

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// TestCopies verifies that objects of the listed kinds are copied, also of a kind that is installed later,
// and that the copies follow their object.
func TestCopies(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	manager, err := newManager(ctx, cluster.Config(),
		ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }() // ended by cancel
	load := func(text string) {
		t.Helper()
		if err := cluster.LoadFS(ctx, fstest.MapFS{"a.yaml": {Data: []byte(text)}}, "a.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	// await waits until the copy has a value, or does not exist.
	await := func(gvr schema.GroupVersionResource, want string) {
		t.Helper()
		got := ""
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 5*time.Minute, true,
			func(ctx context.Context) (bool, error) {
				u, err := cluster.Client().Resource(gvr).Namespace("to").Get(ctx, "a", metav1.GetOptions{})
				got = ""
				if err == nil {
					got, _, _ = unstructured.NestedString(u.Object, "value")
				}
				return got == want && (want != "" || apierrors.IsNotFound(err)), nil
			})
		if err != nil {
			t.Fatalf("the copy of %s has the value %q, want %q: %v", gvr.Resource, got, want, err)
		}
	}
	widget := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	load("{apiVersion: v1, kind: Namespace, metadata: {name: from}}")
	load("{apiVersion: v1, kind: Namespace, metadata: {name: to}}")
	load("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: copied-kinds}, data: {kinds: Widget.example.com}}")
	load(widgets)
	set := func(labels, value string) {
		load("{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: from, name: a, labels: {" + labels + "}}, value: " +
			value + "}")
	}
	set("example.com/copy-to: to", "one")
	await(widget, "one")
	set("example.com/copy-to: to", "two")
	await(widget, "two")
	copies := cluster.Client().Resource(widget).Namespace("to")
	if err := copies.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(widget, "two") // again
	set("", "three")
	await(widget, "")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
