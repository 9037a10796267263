package dynamicinformer_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	// Only this import changes. It was "k8s.io/client-go/dynamic/dynamicinformer".
	"github.com/crdcache/crdcache/adapters/compat/dynamicinformer"
)

func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pumps := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "pumps"}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{pumps: "PumpList"},
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Pump",
			"metadata": map[string]any{"namespace": "plant", "name": "intake"},
		}})

	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	lister := factory.ForResource(pumps).Lister()
	factory.Start(ctx.Done())
	fmt.Println("synced:", factory.WaitForCacheSync(ctx.Done())[pumps])

	found, err := lister.ByNamespace("plant").List(labels.Everything())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, obj := range found {
		fmt.Println(obj.(*unstructured.Unstructured).GetName())
	}
	cancel()
	factory.Shutdown()
	// Output:
	// synced: true
	// intake
}
