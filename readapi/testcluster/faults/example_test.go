package faults_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi/testcluster"
	"github.com/crdcache/crdcache/readapi/testcluster/faults"
)

func Example() {
	cluster, err := testcluster.New(context.Background(), testcluster.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster.Faults().Add(faults.Fault{
		Match:  faults.Match{Verbs: []string{"list"}, Resource: "customresourcedefinitions"},
		Times:  1,
		Effect: faults.Status(403, metav1.StatusReasonForbidden, "you may not list definitions"),
	})

	client := cluster.Client()
	definitions := client.Resource(crd.GVR)
	for range 2 {
		list, err := definitions.List(context.Background(), metav1.ListOptions{})
		fmt.Println(list != nil, err)
	}

	// Output:
	// false you may not list definitions
	// true <nil>
}
