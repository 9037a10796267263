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
	if err != nil {
		fmt.Println(err)
		return
	}
	defer factory.Shutdown(ctx)
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}

	first, err := factory.Acquire(widgets)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := factory.Acquire(widgets)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := first.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
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
