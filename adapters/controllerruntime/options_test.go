package controllerruntime

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/internal/apiserver"
)

// TestMemoryBudgetAndPersistence verifies that a cache passes both options to its factory. A second cache
// restores the objects of the first.
func TestMemoryBudgetAndPersistence(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	backend := disk.New(t.TempDir(), disk.Options{})
	for n := range 2 {
		c := newCache(t, server, cache.Options{}, Options{MemoryBudget: 1 << 20, Persistence: backend})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }() // ended by cancel
		<-c.started
		var found corev1.ConfigMap
		must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &found))
		resumed := c.Factory().Informers()[0].Persistence().Resumed
		if budget := c.Factory().MemoryStats().Budget; budget != 1<<20 || resumed != (n == 1) {
			t.Errorf("the budget is %d; start %d resumed: %t", budget, n, resumed)
		}
		cancel()
		must(t, <-ended)
	}
	if err := backend.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, options := range []Options{{MemoryBudget: 1}, {Persistence: backend}} {
		options.Factory = newFactory(t, server)
		if _, err := New(server.Config(), cache.Options{}, options); err == nil ||
			!strings.Contains(err.Error(), "options of Factory") {
			t.Errorf("New() with options and a factory = %v, want an error", err)
		}
	}
	if _, err := New(server.Config(), cache.Options{}, Options{MemoryBudget: -1}); err == nil {
		t.Error("New() with a negative budget succeeded, want an error")
	}
}

// TestMissingTypesAreRejected verifies that reads of a type fail immediately before its creation and after
// its removal. Between them, they succeed.
func TestMissingTypesAreRejected(t *testing.T) {
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	c := cacheOf(t, storage, Options{RejectMissingTypes: true})
	start(t, c)
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		return c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "a"}, object(widgetKind, "", ""))
	}
	if err := read(); !meta.IsNoMatchError(err) {
		t.Fatalf("List() before the type exists = %v, want NoMatch", err)
	}
	if _, err := c.GetInformer(t.Context(), object(widgetKind, "", "")); !meta.IsNoMatchError(err) {
		t.Errorf("GetInformer() before the type exists = %v, want NoMatch", err)
	}
	calls, _ := addRecorder(t, c, object(widgetKind, "", ""), cache.BlockUntilSynced(false))
	apply := func() {
		if _, err := storage.Apply(widgetDefinition()); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Apply(object(widgetKind, "web", "a")); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		apply()
		if got := <-calls; got.event != "add" {
			t.Fatalf("received %+v, want an addition", got)
		}
		eventually(t, "object", func() bool { return read() == nil })
		storage.Delete(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
			"", "widgets.example.com")
		if got := <-calls; got.event != "delete" {
			t.Fatalf("received %+v, want a deletion", got)
		}
		eventually(t, "rejection", func() bool { return meta.IsNoMatchError(read()) })
	}
}
