package informer

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
)

// refusingListerWatcher returns a ListerWatcher for an address without a server.
func refusingListerWatcher(t *testing.T) cache.ListerWatcher {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(&rest.Config{Host: host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
	}, client)
}

// TestStopWhileRefused verifies that the end of the context ends the pause after a rejected watch-list. The
// clock stands still, so nothing else can end the pause.
func TestStopWhileRefused(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	i := New(InlineWatcherOf(refusingListerWatcher(t)), Options{Clock: clock})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended by cancel
		defer close(done)
		i.RunWithContext(ctx)
	}()
	for !clock.HasWaiters() { // ends when the reflector sleeps
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if !i.IsStopped() || i.HasSynced() {
		t.Errorf("IsStopped() = %v, HasSynced() = %v, want true, false", i.IsStopped(), i.HasSynced())
	}
}

// TestRetriesWaitOnTheClock verifies that the pauses after failed lists use the informer's clock.
func TestRetriesWaitOnTheClock(t *testing.T) {
	captureErrors(t)
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	failure := errors.New("no list")
	q := &recordingListerWatcher{err: failure, seen: make(chan metav1.ListOptions)}
	i := New(InlineWatcherOf(q), Options{Clock: clock, Logger: discardLogger()})
	failures := make(chan error, 10)
	if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failures <- err }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended by cancel
		defer close(done)
		i.RunWithContext(ctx)
	}()
	for range 3 {
		<-q.seen
		if err := <-failures; !errors.Is(err, failure) {
			t.Errorf("the error handler got %v, want the list's error", err)
		}
		for !clock.HasWaiters() { // ends when the informer waits for its next attempt
			time.Sleep(time.Millisecond)
		}
		select {
		case <-q.seen:
			t.Error("the informer listed again without a pause")
		default:
		}
		clock.Step(time.Minute)
	}
	<-q.seen
	cancel()
	<-done
}

// TestPanickingTransform verifies that a panic of a transform is reported and only affects its object. The
// test changes settings of the process, so it does not run in parallel.
func TestPanickingTransform(t *testing.T) {
	crash := utilruntime.ReallyCrash
	t.Cleanup(func() { utilruntime.ReallyCrash = crash })
	utilruntime.ReallyCrash = false
	reports := captureErrors(t)
	f := newIdleFeed(t, Options{})
	f.ok(f.SetTransform(func(obj any) (any, error) {
		if obj.(*unstructured.Unstructured).GetName() == "bad" {
			panic("transform trouble")
		}
		return obj, nil
	}))
	f.startIncarnation()
	f.list(2, object("bad", 1), object("good", 2))
	if got := reports(); len(got) != 1 ||
		!strings.Contains(got[0], `object "ns/bad": transforming: panic: transform trouble`) {
		t.Errorf("got the error reports %q, want one about the panic", got)
	}
	expect(t, "keys", f.keys(), []string{"ns/good"})
}

// panicCounter is a ListerWatcher that counts calls of Panicked. It panics in the first list.
type panicCounter struct {
	channelWatcher
	panicked bool
	values   []any
}

func (p *panicCounter) ListWithContext(ctx context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
	if !p.panicked {
		p.panicked = true
		panic("list trouble")
	}
	return p.channelWatcher.ListWithContext(ctx, options)
}

func (p *panicCounter) Panicked(value any) { p.values = append(p.values, value) }

// TestPanickingRound verifies that a panic during a list or watch is reported to the ListerWatcher, and that
// the reflector tries again after client-go's pause. The test changes settings of the process, so it does not
// run in parallel.
func TestPanickingRound(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	synctest.Test(t, func(t *testing.T) {
		i := New(nil, Options{Backoff: &wait.Backoff{Duration: time.Millisecond, Factor: 1}})
		q := &panicCounter{channelWatcher: InlineWatcherOf(&recordingListerWatcher{
			seen:  make(chan metav1.ListOptions, 10),
			items: []unstructured.Unstructured{*object("a", 1)}}).(channelWatcher)}
		start := time.Now()
		ended := make(chan error, 1)
		// ended by Stop
		go func() { ended <- i.RunPartition(t.Context(), nil, Partition{ListerWatcher: q}) }()
		if err := i.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys := i.GetStore().ListKeys(); len(keys) != 1 {
			t.Errorf("the cache has the keys %v, want 1", keys)
		}
		if paused := time.Since(start); paused < backoffFirst {
			t.Errorf("listed again after %v, want client-go's minimum of %v", paused, backoffFirst)
		}
		i.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-i.Stopped()
		if len(q.values) != 1 || q.values[0] != "list trouble" {
			t.Errorf("Panicked was called with %v, want list trouble", q.values)
		}
	})
}
