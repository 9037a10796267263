package dynamicinformer_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Several parts of a program follow a type, each for as long as it needs the type. They share one watch,
// which ends with the last release.
func ExampleFactory_Acquire() {
	server := cluster()
	defer server.Close()
	ctx := context.Background()
	factory, err := dynamicinformer.New(dynamicinformer.Options{
		Config: &rest.Config{Host: server.URL},
		Linger: -1, // stop immediately after the last release
	})
	must(err)
	defer factory.Shutdown(ctx)
	must(factory.Start(ctx))

	first, err := factory.Acquire(widgets)
	must(err)
	second, err := factory.Acquire(widgets)
	must(err)
	must(first.WaitForSync(ctx))
	fmt.Println("shared:", first.Informer() == second.Informer())
	first.Release()
	fmt.Println("after the first release:", second.Informer().Status().State)
	second.Release()
	fmt.Println("after the second:", len(factory.Status()), "informers")

	// Output:
	// shared: true
	// after the first release: Synced
	// after the second: 0 informers
}
