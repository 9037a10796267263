package testcluster_test

import (
	"context"
	"fmt"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/test/testcluster"
)

// files replace testdata or an embedded file system.
var files = fstest.MapFS{"crds/widgets.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {replicas: {type: integer, default: 1}}}
          status: {type: object, properties: {ready: {type: boolean}}}
`)}}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newWidget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
		"spec": map[string]any{},
	}}
}

// Clients write as to a kube-apiserver.
func Example() {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx, testcluster.Options{FS: files, Paths: []string{"crds"}})
	must(err)
	client := cluster.Client().Resource(widgets).Namespace("default")

	created, err := client.Create(ctx, newWidget("a"), metav1.CreateOptions{})
	must(err)
	fmt.Println("created with", created.Object["spec"])

	stale := created.DeepCopy()
	created.Object["status"] = map[string]any{"ready": true}
	updated, err := client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	must(err)
	fmt.Println("ready:", updated.Object["status"], "in generation", updated.GetGeneration())
	_, err = client.Update(ctx, stale, metav1.UpdateOptions{})
	fmt.Println("conflict:", apierrors.IsConflict(err))
	_, err = cluster.Client().Resource(widgets).Namespace("none").Create(ctx, newWidget("a"),
		metav1.CreateOptions{})
	fmt.Println(err)

	// Output:
	// created with map[replicas:1]
	// ready: map[ready:true] in generation 1
	// conflict: true
	// namespaces "none" not found
}

// Faults fail requests like a real server.
func ExampleCluster_Faults() {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx,
		testcluster.Options{FS: files, Paths: []string{"crds"}, Objects: nil})
	must(err)
	cluster.Faults().Add(testcluster.Fault{
		Match: testcluster.Match{Verbs: []string{"create"}, Resource: "widgets"}, Times: 1,
		Effect: testcluster.Status(403, metav1.StatusReasonForbidden, "no widgets for you"),
	})
	client := cluster.Client().Resource(widgets).Namespace("default")
	for range 2 {
		_, err := client.Create(ctx, newWidget("a"), metav1.CreateOptions{})
		fmt.Println(err)
	}

	// Output:
	// no widgets for you
	// <nil>
}

// Errors in manifests contain the position.
func ExampleCluster_LoadFS() {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	fmt.Println(cluster.LoadFS(ctx, fstest.MapFS{"a.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: web}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: b}
`)}}, "."))
	fmt.Println(cluster.LoadFS(ctx, files, "crds"), cluster.Load(ctx, newWidget("b")))

	// Output:
	// a.yaml:2: document 1: ConfigMap web/a: the namespace "web" does not exist: load it as well
	// a.yaml:6: document 2: Widget b: no type has the kind Widget.example.com: load its CustomResourceDefinition as well
	// <nil> <nil>
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
