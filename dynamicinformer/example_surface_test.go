package dynamicinformer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Wait until handlers have handled all events before the program ends.
func ExampleFactory_Shutdown() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()

	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	informer := factory.MustForResource(widgets)
	var names []string // needs no lock, because one goroutine calls the handler
	_, err = informer.AddEventHandler(dynamicinformer.Named("names", cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { names = append(names, obj.(*unstructured.Unstructured).GetName()) },
	}))
	must(err)
	must(factory.Start(ctx))

	must(factory.WaitForSync(ctx))
	must(factory.Shutdown(ctx))
	slices.Sort(names)
	fmt.Println(names)

	// Output:
	// [a b]
}

// Read the JSON of all cached objects without decoding them.
func ExampleSnapshot_AllJSON() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()

	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: server.URL}})
	must(err)
	defer factory.Shutdown(ctx)
	informer, err := factory.ForResource(widgets)
	must(err)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))

	err = informer.Snapshot().AllJSON(func(key string, text []byte) error {
		_, spec, _ := strings.Cut(string(text), `"spec":`)
		fmt.Println(key, strings.TrimSuffix(spec, "}"))
		return nil
	})
	fmt.Println(err)

	// Unordered output:
	// web/a {"color":"red"}
	// web/b {"color":"blue"}
	// <nil>
}
