package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestCacheThatIsNeverStarted checks that a cache that is not started leaks no goroutine. Otherwise synctest
// fails.
func TestCacheThatIsNeverStarted(t *testing.T) {
	server := newServer(t)
	for name, end := range map[string]func(*Cache){"forgotten": func(*Cache) {}, "closed": (*Cache).Close} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, server, cache.Options{}, Options{})
				i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				end(c)
			})
		})
	}
}

// TestClose closes a started and a new cache. A shared factory must continue to run.
func TestClose(t *testing.T) {
	server := newServer(t)
	factory := newFactory(t, server)
	for name, options := range map[string]Options{"its own factory": {}, "shared": {Factory: factory}} {
		t.Run(name, func(t *testing.T) {
			unstarted := newCache(t, server, cache.Options{}, options)
			if _, err := unstarted.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
				t.Fatal(err)
			}
			unstarted.Close()
			unstarted.Close()
			if err := unstarted.Start(t.Context()); !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("Start() after Close = %v, want ErrStopped", err)
			}
			if err := unstarted.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"},
				&corev1.ConfigMap{}); !errors.Is(err, dynamicinformer.ErrStopped) {
				t.Errorf("Get() after Close = %v, want ErrStopped", err)
			}
			if unstarted.WaitForCacheSync(t.Context()) {
				t.Error("WaitForCacheSync() of a closed cache = true, want false")
			}
			running := newCache(t, server, cache.Options{}, options)
			ended := make(chan error)
			go func() { ended <- running.Start(t.Context()) }() // ended by Close
			if !running.WaitForCacheSync(t.Context()) {
				t.Fatal("timed out waiting for the sync")
			}
			running.Close()
			if err := <-ended; err != nil {
				t.Errorf("Start() = %v after Close, want nil", err)
			}
		})
	}
	if remaining := factory.Informers(); len(remaining) != 0 {
		for _, i := range remaining {
			t.Errorf("informer remains: %s", i.Status())
		}
	}
}

// TestEndDropsEvents verifies that after the end of its context the cache calls no handler again, like the
// stock cache. It does not wait for queued events to be handled.
func TestEndDropsEvents(t *testing.T) {
	server := newServer(t)
	for n := range 10 {
		server.Create(t, configMaps, configMap("web", fmt.Sprintf("a%d", n)))
	}
	c := newCache(t, server, cache.Options{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }() // ended by cancel
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	entered, gate, calls := make(chan struct{}, 10), make(chan struct{}), 0
	if _, err := i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		calls++
		entered <- struct{}{}
		<-gate
	}}); err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	for deadline := time.Now().Add(2 * time.Minute); !i.IsStopped(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Error("timed out waiting for the informer to stop while a handler runs")
			break
		}
	}
	close(gate)
	if err := <-ended; err != nil {
		t.Errorf("Start() = %v, want nil", err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want the running one only", calls)
	}
}
