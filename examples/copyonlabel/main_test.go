package main

import (
	"context"
	"strings"
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
	await := func(gvr schema.GroupVersionResource, name, want string) {
		t.Helper()
		got := ""
		err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true,
			func(ctx context.Context) (bool, error) {
				u, err := cluster.Client().Resource(gvr).Namespace("to").Get(ctx, name, metav1.GetOptions{})
				got = ""
				if err == nil {
					got, _, _ = unstructured.NestedString(u.Object, "value")
				}
				return got == want && (want != "" || apierrors.IsNotFound(err)), nil
			})
		if err != nil {
			t.Fatalf("the copy of %s has the value %q, want %q: %v", name, got, want, err)
		}
	}
	widget := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	load("{apiVersion: v1, kind: Namespace, metadata: {name: from}}")
	load("{apiVersion: v1, kind: Namespace, metadata: {name: to}}")
	load("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: copied-kinds}, data: {kinds: Widget.example.com}}")
	load(widgets)
	set := func(labels, value string) {
		load("{apiVersion: example.com/" + widget.Version + ", kind: Widget, metadata: {namespace: from, name: a, " +
			"labels: {" + labels + "}}, value: " + value + "}")
	}
	set("example.com/copy-to: to", "one")
	await(widget, "a", "one")
	set("example.com/copy-to: to", "two")
	await(widget, "a", "two")
	copies := cluster.Client().Resource(widget).Namespace("to")
	if err := copies.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(widget, "a", "two") // again
	set("", "three")
	await(widget, "a", "")
	// Objects that are no copies stay: one of the same name, and one whose label has its own namespace.
	load("{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: to, name: a}, value: other}")
	set("example.com/copy-to: to", "four")
	load("{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: from, name: own, labels: " +
		"{example.com/copy-to: from}}, value: own}")
	load("{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: from, name: b, labels: " +
		"{example.com/copy-to: to}}, value: last}")
	await(widget, "b", "last")
	await(widget, "a", "other")
	if err := copies.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(widget, "a", "four")
	own, err := cluster.Client().Resource(widget).Namespace("from").Get(ctx, "own", metav1.GetOptions{})
	if err != nil || own.GetLabels()[targetLabel] != "from" {
		t.Errorf("an object with its own namespace in the label: %v, %v", own, err)
	}
	load(strings.Replace(widgets, "{name: v1, served: true, storage: true,", "{name: v1, served: false, storage: false, "+
		"schema: {openAPIV3Schema: {type: object}}}\n  - {name: v2, served: true, storage: true,", 1))
	widget.Version = "v2"
	set("example.com/copy-to: to", "five")
	await(widget, "a", "five")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
