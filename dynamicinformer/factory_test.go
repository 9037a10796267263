package dynamicinformer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

func TestForResource(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	first := mustInformer(t, f, widgets)
	if first.GVR() != widgets {
		t.Errorf("GVR() = %v, want widgets", first.GVR())
	}
	if again := mustInformer(t, f, widgets); again != first {
		t.Error("the second call returned another informer")
	}
	if other := mustInformer(t, f, gadgets); other == first {
		t.Error("another type has the same informer")
	}
	for _, bad := range []schema.GroupVersionResource{{}, {Version: "v1"}, {Resource: "widgets"},
		{Group: "example.com", Resource: "widgets"}} {
		if i, err := f.ForResource(bad); err == nil || i != nil {
			t.Errorf("ForResource(%v) = %v, %v; want an error", bad, i, err)
		}
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, gvr := range []schema.GroupVersionResource{widgets, {Version: "v1", Resource: "new"}} {
		if i, err := f.ForResource(gvr); !errors.Is(err, ErrShutdown) || i != nil {
			t.Errorf("after Shutdown, ForResource(%v) = %v, %v; want ErrShutdown", gvr, i, err)
		}
	}
	if err := f.Start(t.Context()); !errors.Is(err, ErrShutdown) {
		t.Errorf("after Shutdown, Start = %v; want ErrShutdown", err)
	}
}

func TestMustForResource(t *testing.T) {
	f := newFactory(t, newServer(t), Options{})
	if f.MustForResource(widgets) != mustInformer(t, f, widgets) {
		t.Error("MustForResource returned another informer than ForResource")
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "lacks a version") {
			t.Errorf("MustForResource panicked with %v, want an error about the version", err)
		}
	}()
	f.MustForResource(schema.GroupVersionResource{})
}

// TestHandlerCallsFactory verifies that callbacks run without locks, so they can call all methods of the
// factory except Shutdown.
func TestHandlerCallsFactory(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	i := mustInformer(t, f, widgets)
	done := make(chan error, 1)
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := f.ForResource(gadgets)
		if err == nil {
			err = f.Start(context.Background())
		}
		if err == nil {
			err = f.WaitForSync(ctx, gadgets)
		}
		_, _ = f.Status(), i.Status()
		done <- err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(longContext(t)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("a call from a handler failed: %v", err)
	}
}
