package filesource_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/filesource"
	"github.com/crdcache/crdcache/internal/manifest"
)

// Any client can read the files.
func Example() {
	manifests := strings.NewReader(`
apiVersion: v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Widget, metadata: {namespace: web, name: a}}
- {apiVersion: example.com/v1, kind: Widget, metadata: {namespace: web, name: b}}
- {apiVersion: example.com/v1, kind: Widget}
`)
	source, err := filesource.Open(context.Background(), filesource.Options{Paths: []string{manifest.Stdin},
		In: manifests})
	must(err)
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	source.RecordUse(widgets.GroupResource())
	for _, problem := range source.Problems() {
		fmt.Println(problem)
	}

	client := dynamic.NewForConfigOrDie(source.Config())
	list, err := client.Resource(widgets).List(context.Background(), metav1.ListOptions{})
	must(err)
	for _, widget := range list.Items {
		fmt.Println(widget.GetNamespace(), widget.GetName())
	}

	// Output:
	// stdin:7: document 1, item 3: Widget.example.com has no metadata.name
	// stdin:5: document 1, item 1: no CustomResourceDefinition defines Widget.example.com: assuming it is namespaced and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them
	// web a
	// web b
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
