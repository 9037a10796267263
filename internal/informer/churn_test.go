package informer

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/newer"
)

// BenchmarkEventsWhileHandlersChange measures one event from the watch to a handler, while 100 goroutines add
// and remove handlers.
func BenchmarkEventsWhileHandlersChange(b *testing.B) {
	for _, c := range comparedInformers {
		b.Run(c.name, func(b *testing.B) {
			p := &benchmarkSource{list: benchItems(1000), events: make(chan watch.Event)}
			inf := c.make(p)
			handled := make(chan string, 1)
			handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_,
				obj any) {
				handled <- obj.(*unstructured.Unstructured).GetResourceVersion()
			}}
			if _, err := inf.AddEventHandler(handler); err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var running sync.WaitGroup
			running.Go(func() { inf.RunWithContext(ctx) }) // ended by cancel
			<-newer.Done(inf, nil)
			for range 100 {
				running.Go(func() { // ended by cancel
					for ctx.Err() == nil {
						if handle, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err == nil {
							_ = inf.RemoveEventHandler(handle)
						}
					}
				})
			}
			version := 1
			for b.Loop() {
				version++
				p.events <- watch.Event{Type: watch.Modified, Object: benchObject(version%1000, version)}
				if got := <-handled; got != strconv.Itoa(version) {
					b.Fatalf("got %s, want %d", got, version)
				}
			}
			cancel()
			running.Wait()
		})
	}
}

// TestLateHandlersCostAList checks that the informer allocates only a list of pointers for a new handler, not
// notifications, and that it does so outside of its lock.
func TestLateHandlersCostAList(t *testing.T) {
	const objects, pointer = 20_000, 16
	f := newFeed(t, Options{})
	all := make([]*unstructured.Unstructured, objects)
	for n := range all {
		all[n] = benchObject(n, n+1)
	}
	f.list(objects, all...)
	entered, release := make(chan struct{}), make(chan struct{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := f.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		select {
		case entered <- struct{}{}:
			<-release
		case <-release:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	runtime.ReadMemStats(&after)
	close(release)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*objects*pointer {
		t.Errorf("adding a handler with %d objects allocates %d bytes, want at most 2 pointers each", objects,
			got)
	}
}
