package testcluster_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/testcluster"
)

func TestInformer(t *testing.T) {
	ctx := t.Context()
	cluster, err := testcluster.New(ctx, testcluster.Options{FS: files, Paths: []string{"crds"}})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: cluster.Config()})
	if err != nil {
		t.Fatal(err)
	}
	defer factory.Shutdown(ctx)
	informer, err := factory.ForResource(widgets)
	if err != nil {
		t.Fatal(err)
	}
	added := make(chan string, 1)
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		added <- obj.(metav1.Object).GetName()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Client().Resource(widgets).Namespace("default").Create(ctx, newWidget("a"),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if name := <-added; name != "a" {
		t.Errorf("the handler received the widget %s, want a", name)
	}
}
