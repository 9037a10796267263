package informer_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
)

func TestConformance(t *testing.T) {
	server := httptest.NewServer(conformance.NewAPIServer())
	t.Cleanup(server.Close)
	conformance.Run(t, &rest.Config{Host: server.URL}, func(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
		return informer.New(lw, informer.Options{ExampleObject: example, ResyncPeriod: resync, Indexers: indexers})
	})
}
