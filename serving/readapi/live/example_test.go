package live_test

import (
	"context"
	"fmt"
	"testing/fstest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/readapi/live"
	"github.com/crdcache/crdcache/test/testcluster"
)

// Example serves the namespaces of a cluster from a cache. A program would listen on an address; here the
// client calls the server within the process.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	objects := fstest.MapFS{"a.yaml": {Data: []byte("{apiVersion: v1, kind: Namespace, metadata: {name: moon}}")}}
	cluster, err := testcluster.New(ctx, testcluster.Options{FS: objects, Paths: []string{"a.yaml"}})
	must(err)
	tracker, _ := discovery.NewTracker(cluster.Config(), discovery.TrackerOptions{})
	ended := make(chan error)
	go func() { ended <- tracker.Run(ctx) }() // ended by cancel
	factory, _ := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config(),
		Types: tracker.Types()})
	server, err := live.New(live.Options{Factory: factory, Types: tracker.Types(), Config: cluster.Config()})
	must(err)
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	informer, _ := factory.ForResource(namespaces)
	err = server.AddType(informer)
	if err == nil {
		err = factory.Start(ctx)
	}
	if err == nil {
		err = server.WaitForSync(ctx, namespaces.GroupResource())
	}
	must(err)

	client, _ := dynamic.NewForConfig(readapi.Config(server))
	moon, err := client.Resource(namespaces).Get(ctx, "moon", metav1.GetOptions{ResourceVersion: "0"})
	must(err)
	fmt.Println(moon.GetKind(), moon.GetName())

	server.Close()
	_ = factory.Shutdown(ctx)
	cancel()
	<-ended
	// Output: Namespace moon
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
