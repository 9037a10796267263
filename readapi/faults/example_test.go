package faults_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/faults"
)

func Example() {
	injector := faults.New(readapi.NewHandler(readapi.NewStorage(readapi.StorageOptions{}),
		readapi.HandlerOptions{}))
	injector.Add(faults.Fault{
		Match:  faults.Match{Verbs: []string{"list"}, Resource: "customresourcedefinitions"},
		Times:  1,
		Effect: faults.Status(403, metav1.StatusReasonForbidden, "you may not list definitions"),
	})

	client := dynamic.NewForConfigOrDie(readapi.Config(injector))
	definitions := client.Resource(crd.GVR)
	for range 2 {
		list, err := definitions.List(context.Background(), metav1.ListOptions{})
		fmt.Println(list != nil, err)
	}

	// Output:
	// false you may not list definitions
	// true <nil>
}
