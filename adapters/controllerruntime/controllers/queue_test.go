package controllers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestQueue verifies that a queue returns requests by priority and in order, once, not while they are
// processed, after their delay, and not after ShutDown, nor after the end of their controller.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &queue{}
		all.changed = sync.NewCond(&all.mu)
		ctx, stop := context.WithCancel(t.Context())
		k := &running{ctx: ctx, controllers: &Controllers{queue: all}}
		k.settings.Store(&Settings{MaxConcurrent: 1})
		q := newRequests(k, nil)
		k.queue = q
		request := func(name string) reconcile.Request {
			return reconcile.Request{NamespacedName: named(name)}
		}
		expect := func(want ...string) {
			t.Helper()
			var got []string
			for q.Len() > 0 {
				i, priority, _ := all.GetWithPriority()
				got = append(got, fmt.Sprint(i.name.Name, priority))
				all.Done(i)
			}
			if !slices.Equal(got, want) {
				t.Errorf("requests %q, want %q", got, want)
			}
		}
		add := func(priority int, after time.Duration, isLimited bool, names ...string) {
			o := priorityqueue.AddOpts{Priority: &priority, After: after, RateLimited: isLimited}
			for _, name := range names {
				q.AddWithOpts(o, request(name))
			}
		}
		add(handler.LowPriority, 0, false, "a", "b", "c", "d")
		q.Add(request("c"))
		add(5, 0, false, "e", "b")
		add(1, 0, false, "b", "f")
		q.Add(request("g"))
		expect("e5", "b5", "f1", "c0", "g0", "a-100", "d-100")
		add(handler.LowPriority, 0, false, "c", "b")
		expect("c-100", "b-100")

		q.Add(request("a"))
		i, _, _ := all.GetWithPriority()
		add(3, 0, false, "a")
		expect()
		all.Done(i)
		expect("a3")

		add(2, time.Minute, true, "a") // the rate limiter is faster
		add(0, time.Hour, false, "b")
		expect()
		time.Sleep(time.Second)
		synctest.Wait()
		expect("a2")
		time.Sleep(time.Hour)
		synctest.Wait()
		expect("b0")
		if n := q.NumRequeues(request("a")); n != 1 {
			t.Errorf("%d requeues, want 1", n)
		}

		wasShuttingDown := q.ShuttingDown()
		q.Add(request("a"))
		stop()
		q.Add(request("c"))
		if wasShuttingDown || !q.ShuttingDown() || q.Len() != 1 {
			t.Errorf("ShuttingDown() = %t before the end, %t with %d requests after it; want false, true, 1",
				wasShuttingDown, q.ShuttingDown(), q.Len())
		}
		add(0, time.Minute, false, "b")
		all.ShutDown()
		if i, _, shutdown := all.GetWithPriority(); !shutdown {
			t.Errorf("GetWithPriority() = %v after ShutDown", i.name)
		}
	})
}

// TestGoroutines verifies that an idle controller has few goroutines, for any number of watches.
func TestGoroutines(t *testing.T) {
	f := newFixture(t, Options{})
	f.awaitStart()
	const count = 50
	before := runtime.NumGoroutine()
	for n := range count {
		f.install(fmt.Sprint("apple", n))
		err := f.all.Ensure(t.Context(), fmt.Sprint(n), Settings{For: watchOf(fmt.Sprint("apple", n)),
			Watches: []Watch{watchOf("pear"), watchOf("plum")}, Reconciler: &requestLog{}})
		if err != nil {
			t.Fatal(err)
		}
	}
	waits := func(s Status) bool { return strings.Contains(s.Ready.Message, "apple") }
	f.eventually("all controllers", func() bool { return !slices.ContainsFunc(f.all.All(), waits) })
	// The informer of its type has two of these.
	f.eventually("idle controllers", func() bool { return (runtime.NumGoroutine()-before)/count < 5 })
}
