package typed_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typed"
	"github.com/crdcache/crdcache/test/testcluster"
)

// Account has the fields of a ServiceAccount that the example reads.
type Account struct {
	metav1.ObjectMeta `json:"metadata"`
	Secrets           []struct {
		Name string `json:"name"`
	} `json:"secrets"`
}

// Read a type as a Go struct, without a scheme and without generated code.
func Example() {
	ctx := context.Background()
	cluster, err := testcluster.New(ctx, testcluster.Options{})
	must(err)
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	_, err = cluster.Client().Resource(accounts).Namespace("default").Create(ctx, &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "builder"},
			"secrets": []any{map[string]any{"name": "registry"}},
		},
	}, metav1.CreateOptions{})
	must(err)

	factory, err := dynamicinformer.New(dynamicinformer.Options{Client: cluster.Client()})
	must(err)
	defer factory.Shutdown(ctx)
	informer, err := factory.ForResource(accounts)
	must(err)
	must(factory.Start(ctx))
	must(informer.WaitForSync(ctx))
	account, err := typed.As[Account](informer).Get("default", "builder")
	must(err)
	fmt.Println(account.Name, "uses", account.Secrets[0].Name)

	// Output:
	// builder uses registry
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
