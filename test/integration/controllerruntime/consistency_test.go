package controllerruntime_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/controllerruntime"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestConsistentClient reads its own writes through controller-runtime's client. The client's event handler
// decodes no object. The client records writes of unstructured objects as writes of structs, so the test uses
// only structs.
func TestConsistentClient(t *testing.T) {
	w := widgets{schema.GroupVersion{Group: harness.Group(t), Version: "v1"}}
	harness.InstallCRDs(t, harness.NewCRD(w.Group, "Widget"))
	shared := startCache(t, cache.Options{Scheme: w.scheme()})
	c, err := client.New(harness.Config(t), client.Options{Scheme: w.scheme(), Cache: &client.CacheOptions{
		Reader: shared, EnableReadYourWritesConsistency: new(true)}})
	if err != nil {
		t.Fatal(err)
	}
	o := w.typed()
	o.SetNamespace(harness.Namespace(t))
	o.SetName("a")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		o.SetAnnotations(map[string]string{"a": fmt.Sprint(n)})
		if err := c.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		read := w.typed()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), read); err != nil ||
			read.GetResourceVersion() != o.GetResourceVersion() {
			t.Fatalf("Get() returned version %s, want the written version %s (%v)", read.GetResourceVersion(),
				o.GetResourceVersion(), err)
		}
	}
	all := shared.(*controllerruntime.Cache).Factory().Informers()[0].Handlers()
	if len(all) != 1 || !strings.Contains(all[0].Name, "ConsistencyHandler") || all[0].DecodesBecause != "" {
		t.Errorf("Handlers() = %+v, want one ConsistencyHandler that decodes nothing", all)
	}
}
