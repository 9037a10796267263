package controllerruntime

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

// memoryBackend stores content in memory.
type memoryBackend struct {
	mu      sync.Mutex
	content map[string]*memoryContent
}

type memoryContent struct {
	backend    *memoryBackend
	checkpoint persistence.Checkpoint
	objects    map[string]string
	loads      int
}

func (b *memoryBackend) Open(_ context.Context, key string) (persistence.StoredContent, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.content[key] == nil {
		b.content[key] = &memoryContent{backend: b, objects: map[string]string{}}
	}
	return b.content[key], nil
}

func (c *memoryContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	return c.checkpoint, len(c.objects) > 0, nil
}

func (c *memoryContent) Load(_ context.Context, object func(json []byte) error) error {
	c.backend.mu.Lock()
	all := maps.Clone(c.objects)
	c.loads++
	c.backend.mu.Unlock()
	for _, json := range all {
		if err := object([]byte(json)); err != nil {
			return err
		}
	}
	return nil
}

func (c *memoryContent) Save(_ context.Context, checkpoint persistence.Checkpoint, whole bool,
	write func(persistence.Writer) error) error {
	c.backend.mu.Lock()
	defer c.backend.mu.Unlock()
	if c.checkpoint = checkpoint; whole {
		clear(c.objects)
	}
	return write(c)
}

func (c *memoryContent) Put(key string, json []byte) error { c.objects[key] = string(json); return nil }
func (c *memoryContent) Delete(key string) error           { delete(c.objects, key); return nil }
func (c *memoryContent) Close() error                      { return nil }

// TestMemoryBudgetAndPersistence verifies that a cache passes both options to its factory. A second cache
// restores the objects of the first.
func TestMemoryBudgetAndPersistence(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	backend := &memoryBackend{content: map[string]*memoryContent{}}
	loads := func() (n int) {
		backend.mu.Lock()
		defer backend.mu.Unlock()
		for _, c := range backend.content {
			n += c.loads
		}
		return n
	}
	for n := range 2 {
		c := newCache(t, server, cache.Options{}, Options{MemoryBudget: 1 << 20, Persistence: backend})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }() // ended by cancel
		<-c.started
		var found corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &found); err != nil {
			t.Fatal(err)
		}
		if budget := c.Factory().MemoryStats().Budget; budget != 1<<20 || loads() != n {
			t.Errorf("the budget is %d; content was loaded %d times, want %d", budget, loads(), n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
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
	c, err := New(readapi.Config(readapi.NewHandler(storage, readapi.HandlerOptions{})),
		cache.Options{Mapper: newMapper()}, Options{RejectMissingTypes: true})
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	read := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return c.Get(ctx, client.ObjectKey{Namespace: "web", Name: "a"}, object(widgetKind, "", ""))
	}
	if err := read(); !meta.IsNoMatchError(err) {
		t.Fatalf("List() before the type exists = %v, want NoMatch", err)
	}
	if _, err := c.GetInformer(t.Context(), object(widgetKind, "", "")); !meta.IsNoMatchError(err) {
		t.Errorf("GetInformer() before the type exists = %v, want NoMatch", err)
	}
	i, err := c.GetInformer(t.Context(), object(widgetKind, "", ""), cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	calls := make(recorder, 10)
	if _, err := i.AddEventHandler(calls); err != nil {
		t.Fatal(err)
	}
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
