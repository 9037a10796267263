package queue

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

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
	if len(got) != 2000 || !slices.IsSorted(got) || q.Pending() != 0 {
		t.Errorf("%d calls, in order: %v, %d pending; want 2000, true, 0", len(got), slices.IsSorted(got),
			q.Pending())
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
