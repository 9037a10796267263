package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
	"weak"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// positive returns 1 for an element above zero, and 0 otherwise.
func positive(n *int) int {
	if *n > 0 {
		return 1
	}
	return 0
}

func TestKeepsOrderAndLength(t *testing.T) {
	q := New(time.Now, positive, nil)
	q.Push(1, 2)
	q.Push(0)
	q.Push()
	q.Push(3)
	if got := q.Len(); got != 3 {
		t.Errorf("the length is %d, want 3: a zero does not count", got)
	}
	var handled []int
	run(q, func(n int) {
		handled = append(handled, n)
		if want := 3 - max(n, 0) + 1; n > 0 && q.Len() != want {
			t.Errorf("%d wait while %d is handled, want %d", q.Len(), n, want)
		}
		if n == 3 {
			q.Close()
		}
	})
	if len(handled) != 4 || handled[0] != 1 || handled[1] != 2 || handled[2] != 0 || handled[3] != 3 {
		t.Errorf("handled %v, want [1 2 0 3]", handled)
	}
}

// run starts a queue and waits until it is closed.
func run[T any](q *Queue[T], handle func(T)) {
	ended := make(chan struct{})
	q.Start(handle, func() { close(ended) })
	<-ended
}

// TestClosedQueueRetainsNothing checks that a closed queue does not retain its consumer. Time is virtual, so
// that a running timer would retain it.
func TestClosedQueueRetainsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newClosedQueue := func() weak.Pointer[[1 << 10]byte] {
			consumer := new([1 << 10]byte)
			q := New[int](time.Now, nil, nil)
			q.Start(func(n int) { consumer[n]++ }, func() {})
			q.Push(1)
			synctest.Wait()
			q.Close()
			return weak.Make(consumer)
		}
		consumer := newClosedQueue()
		synctest.Wait()
		runtime.GC()
		if consumer.Value() != nil {
			t.Error("a closed queue retains its consumer")
		}
	})
}

// TestIdleQueueHasNoGoroutine checks that the goroutine ends after a period without elements, and starts
// again with the next element.
func TestIdleQueueHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](time.Now, nil, nil)
		handled := 0
		ended := false
		q.Start(func(int) { handled++ }, func() { ended = true })
		expectGoroutines := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := goroutines(); got != want || q.Len() != 0 {
				t.Errorf("%s: %d goroutines and %d queued elements, want %d and 0", when, got, q.Len(), want)
			}
		}
		expectGoroutines("at first", 0)
		for range 3 {
			q.Push(1)
			expectGoroutines("after the first element", 1)
			time.Sleep(idleTimeout - time.Second)
			q.Push(2, 3)
			expectGoroutines("after more", 1)
			time.Sleep(idleTimeout)
			expectGoroutines("a while after", 1)
			time.Sleep(idleTimeout)
			expectGoroutines("later", 0)
		}
		if handled != 9 || q.Lag() != 0 || ended {
			t.Errorf("%d elements were handled, want 9; the lag is %v; ended: %v", handled, q.Lag(), ended)
		}
		q.Close()
		if !ended {
			t.Error("Close did not call the queue's end function")
		}
	})
}

// TestGoroutineEndsAfterALongCall checks that the goroutine ends even if an element arrived during a call
// that took longer than idleTimeout.
func TestGoroutineEndsAfterALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](time.Now, nil, nil)
		handled := 0
		q.Start(func(n int) {
			handled++
			time.Sleep(time.Duration(n) * idleTimeout)
		}, func() {})
		q.Push(4)
		time.Sleep(3 * idleTimeout)
		q.Push(0)
		time.Sleep(5 * idleTimeout)
		synctest.Wait()
		if got := goroutines(); got != 0 || handled != 2 || q.Lag() != 0 {
			t.Errorf("%d goroutines, %d handled elements and the lag %v; want 0, 2, 0", got, handled,
				q.Lag())
		}
		if room := cap(q.mu.waiting) + cap(q.mu.arrivals); room != 0 {
			t.Errorf("an idle queue retains slices with a capacity of %d, want 0", room)
		}
		q.Close()
	})
}

// TestQueueGoexit checks that the queue is closed if a handler ends its goroutine, so that a test that fails
// in a handler does not wait forever.
func TestQueueGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](time.Now, nil, nil)
		ended := 0
		q.Start(func(int) { runtime.Goexit() }, func() { ended++ })
		q.Push(1, 2)
		synctest.Wait()
		q.Push(3)
		q.Close()
		if ended != 1 || goroutines() != 0 || q.Lag() != 0 {
			t.Errorf("the end function was called %d times, with %d goroutines and the lag %v; want 1, 0, 0",
				ended, goroutines(), q.Lag())
		}
	})
}

// TestCloseWhileHandling checks that the queue ends when the running call returns, and not before.
func TestCloseWhileHandling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](time.Now, nil, nil)
		turn := make(chan struct{})
		var ended atomic.Bool
		q.Start(func(int) { <-turn }, func() { ended.Store(true) })
		q.Push(1, 2)
		synctest.Wait()
		q.Close()
		synctest.Wait()
		if ended.Load() {
			t.Error("the end function was called during a call")
		}
		close(turn)
		synctest.Wait()
		if !ended.Load() || goroutines() != 0 || q.Len() != 1 {
			t.Errorf("ended: %v, with %d goroutines; %d were dropped, want 1", ended.Load(),
				goroutines(), q.Len())
		}
	})
}

// goroutines counts the goroutines of queues.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "queue.(*Queue[...]).run(")
}

func TestClosedIgnoresAndDrops(t *testing.T) {
	q := New[int](time.Now, nil, nil)
	ended := 0
	q.Start(func(int) { t.Error("an element was handled after Close") }, func() { ended++ })
	q.Close()
	q.Close()
	if ended != 1 {
		t.Errorf("the end function was called %d times, want 1", ended)
	}
	q.Push(1)
	if q.Len() != 0 || !q.Closed() {
		t.Error("a closed queue accepts elements")
	}

	q = New[int](time.Now, nil, nil)
	q.Push(1, 2, 3)
	run(q, func(int) { q.Close() })
	if q.Len() != 2 || q.Lag() != 0 {
		t.Errorf("%d elements were dropped, want 2; the lag is %v", q.Len(), q.Lag())
	}
}

func TestManyProducers(t *testing.T) {
	const producers, each = 8, 2000
	q := New[[2]int](time.Now, nil, nil)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() { // ends after its pushes
			for n := range each {
				q.Push([2]int{p, n})
			}
		})
	}
	next, total := [producers]int{}, 0
	run(q, func(n [2]int) {
		if next[n[0]] != n[1] {
			t.Errorf("producer %d: got element %d, want %d", n[0], n[1], next[n[0]])
			q.Close()
		}
		next[n[0]]++
		if total++; total == producers*each {
			q.Close()
		}
	})
	wg.Wait()
}

// TestLag checks that the lag is the age of the oldest element that is queued or being handled.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[int](time.Now, nil, nil)
		expectGoroutines := func(when string, want time.Duration) {
			t.Helper()
			if got := q.Lag(); got != want {
				t.Errorf("%s the lag is %v, want %v", when, got, want)
			}
		}
		expectGoroutines("of an empty queue", 0)
		q.Push(1, 2)
		time.Sleep(2 * time.Second)
		q.Push(3)
		expectGoroutines("without a consumer", 2*time.Second)
		turn := make(chan struct{})
		q.Start(func(int) { <-turn }, func() {})
		synctest.Wait()
		time.Sleep(time.Second)
		expectGoroutines("while the first is handled", 3*time.Second)
		turn <- struct{}{}
		synctest.Wait()
		expectGoroutines("while the second is handled, which is as old", 3*time.Second)
		turn <- struct{}{}
		synctest.Wait()
		expectGoroutines("while the third is handled", time.Second)
		turn <- struct{}{}
		synctest.Wait()
		expectGoroutines("when all is handled", 0)
		q.Close()
	})
}

// TestLagWhileTheClockIsSet verifies that setting the wall clock does not change the lag. (The virtual clock
// of a synctest bubble has no monotonic part.)
func TestLagWhileTheClockIsSet(t *testing.T) {
	for _, jump := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		var clock atomic.Pointer[time.Time]
		set := func(to time.Time) { clock.Store(&to) }
		start := time.Now()
		set(start)
		q := New[int](func() time.Time { return *clock.Load() }, nil, nil)
		q.Push(1)
		set(wallAhead(t, start.Add(2*time.Second), jump))
		q.Push(2)
		if got := q.Lag(); got != 2*time.Second {
			t.Errorf("%v ahead, the lag is %v without a consumer, want 2s", jump, got)
		}
		entered, turn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
		q.Start(func(int) { entered <- struct{}{}; <-turn }, func() { close(ended) })
		<-entered
		for _, ahead := range []time.Duration{jump, 0} {
			set(wallAhead(t, start.Add(3*time.Second), ahead))
			if got := q.Lag(); got != 3*time.Second {
				t.Errorf("%v ahead, the lag is %v while the first is handled, want 3s", ahead, got)
			}
		}
		q.Close()
		close(turn)
		<-ended
	}
}

// wallAhead returns a time with a later wall clock and the same monotonic clock. The time package has no
// function to read it: seconds are above the 30 bits of nanoseconds in the first word.
func wallAhead(t *testing.T, of time.Time, ahead time.Duration) time.Time {
	t.Helper()
	set := of
	*(*uint64)(unsafe.Pointer(&set)) += uint64(ahead/time.Second) << 30
	if wall := set.Round(0).Sub(of.Round(0)); wall != ahead || set.Sub(of) != 0 {
		t.Fatalf("the clock on the wall is %v ahead, the monotonic clock %v; want %v, 0s", wall,
			set.Sub(of), ahead)
	}
	return set
}

// TestExpandedElements verifies that the parts of an expanded element are handled and counted one by one, and
// that closing the queue in the middle drops the others.
func TestExpandedElements(t *testing.T) {
	type span struct{ from, to int }
	count := func(s *span) int { return s.to - s.from }
	next := func(s *span) (span, bool) {
		one := span{s.from, s.from + 1}
		s.from++
		return one, s.from < s.to
	}
	q := New(time.Now, count, next)
	q.Push(span{0, 3}, span{3, 4}, span{4, 9})
	if q.Len() != 9 {
		t.Errorf("Len() = %d, want 9", q.Len())
	}
	handled := make(chan int)
	ended := make(chan struct{})
	q.Start(func(s span) { handled <- s.from }, func() { close(ended) })
	for want := range 6 {
		if got := <-handled; got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if remaining := q.Len(); remaining < 3 || remaining > 4 {
		t.Errorf("Len() = %d, want 3 or 4", remaining)
	}
	q.Close()
	select {
	case <-handled: // the element being handled
	case <-ended:
	}
	<-ended
	if remaining := q.Len(); remaining < 2 || remaining > 3 {
		t.Errorf("Len() = %d, want 2 or 3", remaining)
	}
}

func TestCallsKeepsOrder(t *testing.T) {
	q := NewCalls()
	var got []int
	var wg sync.WaitGroup
	next := 0
	var mu sync.Mutex
	for range 4 {
		wg.Go(func() {
			for range 500 {
				mu.Lock() // pushes in the order of n
				n := next
				next++
				q.Push(func() { got = append(got, n) })
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for q.Pending() > 0 { // the call of Drain may still return
		runtime.Gosched()
	}
	if len(got) != 2000 || !slices.IsSorted(got) {
		t.Errorf("%d calls, in order: %v; want 2000, true", len(got), slices.IsSorted(got))
	}
}

func TestCallsClose(t *testing.T) {
	q := NewCalls()
	entered, release := make(chan struct{}), make(chan struct{})
	q.Push(func() { close(entered); <-release }, func() { t.Error("a call was made after Close") })
	<-entered
	if q.Pending() != 2 {
		t.Errorf("%d are pending, want 2", q.Pending())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("had enough")
	cancel(why)
	if err := q.Drain(ctx); !errors.Is(err, why) {
		t.Errorf("Drain() of a busy queue = %v, want the cause of the context", err)
	}
	q.Close()
	q.Close()
	q.Push(func() { t.Error("a call was made after Close") })
	select {
	case <-q.done:
		t.Error("done was closed during a call")
	default:
	}
	close(release)
	<-q.done

	idle := NewCalls()
	idle.Close()
	<-idle.done
}

// TestCallsPanic verifies that a panic of a call is not recovered by default, and otherwise delays the next
// call. It changes settings of the process, so it does not run in parallel.
func TestCallsPanic(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.PanicHandlers = nil

	func() {
		defer func() {
			if got := recover(); got != "trouble" {
				t.Errorf("recovered %v, want the panic of the call", got)
			}
		}()
		runRecovering(func() { panic("trouble") })
		t.Error("the panic of a call was recovered")
	}()

	utilruntime.ReallyCrash = false
	synctest.Test(t, func(t *testing.T) {
		q := NewCalls()
		start := time.Now()
		var paused time.Duration
		q.Push(func() { panic("trouble") }, func() { paused = time.Since(start) })
		if err := q.Drain(t.Context()); err != nil || paused != panicPause {
			t.Errorf("the next call came after %v, %v; want %v", paused, err, panicPause)
		}
		q.Push(func() { panic("trouble") })
		synctest.Wait()
		q.Close() // does not wait for the pause
		<-q.done
	})
}

// TestCallsGoexit checks that Drain and Close do not block after a call has ended its goroutine.
func TestCallsGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewCalls()
		q.Push(runtime.Goexit, func() { t.Error("a call was made after Goexit") })
		if err := q.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		q.Push(func() { t.Error("a call was made after Goexit") })
		q.Close()
		<-q.Done()
		if q.Pending() != 0 {
			t.Errorf("Pending() = %d, want 0", q.Pending())
		}
	})
}
