package lifecycle_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestMetadata checks metadata-only storage, whose lists and watches request metadata in different ways.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := newScene(t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata},
	}}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, _ := s.follow(resourceOf(widgets))
	s.awaitSynced(i, 1)
	obj, found, err := i.GetIndexer().GetByKey("default/a")
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	if u := obj.(*unstructured.Unstructured); u.GetKind() != "PartialObjectMetadata" || u.GetUID() == "" ||
		len(u.Object) != 3 {
		t.Errorf("the cache holds %v", u)
	}
}
