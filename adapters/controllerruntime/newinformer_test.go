package controllerruntime

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestNewInformer verifies that NewCache with cache.Options.NewInformer is the stock cache, which reads
// objects in each form from informers of package dynamicinformer.
func TestNewInformer(t *testing.T) {
	newInformer := func(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
		indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		i, _ := dynamicinformer.NewSharedIndexInformer(lw, example, resync, indexers, // only Prune can fail
			dynamicinformer.Prune{})
		return i
	}
	server := newServer(t)
	server.Create(t, configMaps, labelled(configMap("web", "a", "color", "red"), map[string]string{"color": "red"}), configMap("db", "b"))
	c, err := NewCache(server.Config(), cache.Options{Mapper: newMapper(), NewInformer: newInformer})
	must(t, err)
	for _, form := range emptyForms() {
		if err := c.IndexField(t.Context(), form, "color",
			func(o client.Object) []string { return []string{o.GetLabels()["color"]} }); err != nil {
			t.Fatal(err)
		}
	}
	start(t, c)
	for name, form := range emptyForms() {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
			form.GetLabels()["color"] != "red" {
			t.Errorf("%s: Get() = %v, want the red object", name, err)
		}
	}
	for name, list := range lists() {
		err := c.List(t.Context(), list, client.MatchingFields{"color": "red"})
		if found := objectNames(t, list); err != nil || len(found) != 1 || !found["web/a"] {
			t.Errorf("%s: List() by field = %v, %v, want web/a", name, found, err)
		}
	}
	if _, err := NewCacheFunc(Options{Name: "mine"})(server.Config(),
		cache.Options{Mapper: newMapper(), NewInformer: newInformer}); err == nil {
		t.Error("NewCacheFunc accepted options that have no effect with NewInformer")
	}
}
