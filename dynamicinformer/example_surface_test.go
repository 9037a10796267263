package dynamicinformer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
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
	informer := factory.MustForResource(widgets)
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

// Add a selector to a running informer, and remove one.
func ExampleSelectors() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	a := dynamicinformer.Selector{Field: fields.OneTermEqualSelector("metadata.name", "a")}
	b := dynamicinformer.Selector{Field: fields.OneTermEqualSelector("metadata.name", "b")}

	selectors := dynamicinformer.NewSelectors(a)
	factory := started(ctx, server.URL, dynamicinformer.Options{
		Defaults: dynamicinformer.ResourceOptions{Selectors: selectors}})
	defer factory.Shutdown(ctx)
	informer := factory.MustForResource(widgets)
	must(factory.Start(ctx))
	must(factory.WaitForSync(ctx))
	fmt.Println(informer.GetStore().ListKeys())

	must(selectors.Add(b))
	must(informer.WaitForSelectors(ctx))
	fmt.Println(len(informer.GetStore().ListKeys()), "objects")

	selectors.Remove(a)
	fmt.Println(informer.GetStore().ListKeys())

	// Output:
	// [web/a]
	// 2 objects
	// [web/b]
}
