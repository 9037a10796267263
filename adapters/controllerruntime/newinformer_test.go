package controllerruntime

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNewInformer verifies that the stock cache with NewInformer reads objects in each form.
func TestNewInformer(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, labelled(configMap("web", "a", "color", "red"),
		map[string]string{"color": "red"}), configMap("db", "b"))
	c, err := NewCache(server.Config(), cache.Options{Mapper: newMapper(), NewInformer: NewInformer})
	if err != nil {
		t.Fatal(err)
	}
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
		cache.Options{Mapper: newMapper(), NewInformer: NewInformer}); err == nil {
		t.Error("NewCacheFunc accepted options that have no effect with NewInformer")
	}
}
