package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestReleaseFromInside releases an informer from one of its handlers, and acquires it again there.
func TestReleaseFromInside(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{Linger: -1}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	first, err := s.factory.Acquire(resourceOf(widgets))
	if err != nil {
		t.Fatal(err)
	}
	j := newJournal(s)
	again := make(chan *dynamicinformer.Handle, 1)
	_, err = first.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		first.Release()
		second, err := s.factory.Acquire(resourceOf(widgets))
		if err == nil {
			_, err = second.Informer().AddEventHandler(j)
		}
		if err != nil {
			t.Error(err)
		}
		first.Release() // the claim of another is not touched
		again <- second
	}})
	if err != nil {
		t.Fatal(err)
	}
	second := <-again
	if second.Informer() == first.Informer() {
		t.Error("the informer that was released last was returned again")
	}
	s.await(first.Informer(), status.Stopped, status.ReasonNone)
	j.expect("add a")
	s.awaitSynced(second.Informer(), 1)
	second.Release()
	s.await(second.Informer(), status.Stopped, status.ReasonNone)
	if left := s.factory.Status(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
	j.expectNothing()
}

// TestAcquireReleaseChurn acquires and releases a thousand times while the definitions come and go: nothing is
// left of it, neither goroutines nor memory.
func TestAcquireReleaseChurn(t *testing.T) {
	const cycles, warmUp = 1000, 200
	s := newScene(t, dynamicinformer.Options{Linger: -1}, nil)
	group := harness.Group(t)
	var definitions []*unstructured.Unstructured
	for k := range 4 {
		definitions = append(definitions, harness.NewCRD(group, fmt.Sprintf("Kind%c", 'A'+k)))
	}
	harness.InstallCRDs(t, definitions...)
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	stop := s.churn(definitions)
	r := rand.New(rand.NewPCG(1, 1))
	var before usage
	for n := range cycles {
		if n == warmUp {
			before = s.usage(nil)
		}
		s.acquireAndRelease(r, definitions)
	}
	after := s.usage(func(now usage) bool { return now.goroutines <= before.goroutines && now.heap <= before.heap+4<<20 })
	stop()
	t.Logf("after %d cycles %+v, after %d %+v", warmUp, before, cycles, after)
	if left := s.factory.Status(); len(left) != 0 {
		t.Errorf("left are %+v", left)
	}
}

// acquireAndRelease acquires a type once or twice, waits for it or not, and releases it.
func (s *scene) acquireAndRelease(r *rand.Rand, definitions []*unstructured.Unstructured) {
	s.Helper()
	gvr := resourceOf(definitions[r.IntN(len(definitions))])
	var handles []*dynamicinformer.Handle
	for range 1 + r.IntN(2) {
		h, err := s.factory.Acquire(gvr)
		if err != nil {
			s.Fatal(err)
		}
		handles = append(handles, h)
		if _, err := h.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
			s.Fatal(err)
		}
	}
	if r.IntN(4) == 0 {
		// It may be gone, or on its way.
		_, _ = s.factory.WaitForSync(s.ctx, gvr)
	}
	for _, h := range handles {
		h.Release()
	}
}

// churn has one definition after the other go and come back, until it is told to stop.
func (s *scene) churn(definitions []*unstructured.Unstructured) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { // ended by stop
		for n := 0; ; n++ {
			if err := s.replaceDefinition(ctx, definitions[n%len(definitions)]); err != nil || ctx.Err() != nil {
				done <- err
				return
			}
		}
	}()
	return func() {
		s.Helper()
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	}
}

// replaceDefinition deletes a definition and creates it again as soon as its name is free. The end of the context
// leaves it as it is.
func (s *scene) replaceDefinition(ctx context.Context, definition *unstructured.Unstructured) error {
	definitions := s.admin.Resource(crd.GVR)
	if err := definitions.Delete(ctx, definition.GetName(), metav1.DeleteOptions{}); err != nil && ctx.Err() == nil {
		return err
	}
	for ctx.Err() == nil {
		_, err := definitions.Create(ctx, definition, metav1.CreateOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// usage is what a process takes up.
type usage struct {
	goroutines int
	heap       uint64
}

// usage measures until the numbers settle: until enough says so, or, without it, the least of a few times.
func (s *scene) usage(enough func(usage) bool) usage {
	s.Helper()
	measure := func() usage {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return usage{goroutines: runtime.NumGoroutine(), heap: m.HeapAlloc}
	}
	if enough == nil {
		var all []usage
		for range 5 {
			all = append(all, measure())
		}
		return slices.MinFunc(all, func(a, b usage) int { return int(a.heap) - int(b.heap) })
	}
	var now usage
	harness.Eventually(s, func(context.Context) error {
		if now = measure(); !enough(now) {
			return fmt.Errorf("there are %+v", now)
		}
		return nil
	})
	return now
}
