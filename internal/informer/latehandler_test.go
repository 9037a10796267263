package informer

import (
	"runtime"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// TestLateHandlersCostAList checks that the informer allocates only a list of pointers for a new handler, not
// notifications, and that it does so outside of its lock.
func TestLateHandlersCostAList(t *testing.T) {
	const objects, pointer = 20_000, 16
	f := newFeed(t, Options{})
	all := make([]*unstructured.Unstructured, objects)
	for n := range all {
		all[n] = object(strconv.Itoa(n), n+1)
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
