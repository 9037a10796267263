package informer_test

import (
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
)

func TestConformance(t *testing.T) {
	server := httptest.NewServer(conformance.NewAPIServer())
	t.Cleanup(server.Close)
	conformance.Run(t, &rest.Config{Host: server.URL}, conformance.Subject{Name: "informer", New: newSubject})
}

func newSubject(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
	return informer.New(setup.ListWatch(t, conformance.DefaultClient), informer.Options{
		ExampleObject: &unstructured.Unstructured{}, ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
	})
}
