package requests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// waitingLists are lists of a cluster that wait for slots of a Limiter.
type waitingLists struct {
	*testing.T
	*Limiter
	admitted chan func()
}

func newWaitingLists(t *testing.T, limit, lists int) *waitingLists {
	return newPooledLists(t, NewListPool(limit), limit, lists)
}

// newPooledLists returns lists of a cluster whose Limiter shares pool with other clusters.
func newPooledLists(t *testing.T, pool *ListPool, limit, lists int) *waitingLists {
	c := &waitingLists{T: t, Limiter: pool.NewLimiter(limit, time.Now), admitted: make(chan func(), lists)}
	for range lists {
		go func() { // ends when it gets a slot
			release, err := c.Acquire(context.Background())
			if err != nil {
				c.Error(err)
			}
			c.admitted <- release
		}()
	}
	return c
}

// expect waits until all possible lists are admitted, and checks their number.
func (c *waitingLists) expect(step string, active, waiting, limit int) {
	c.Helper()
	synctest.Wait()
	if h, w, b := c.Load(); h != active || w != waiting || b != limit {
		c.Errorf("%s: %d are admitted, %d wait, %d may be; want %d, %d, %d", step, h, w, b, active,
			waiting, limit)
	}
}

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWaitingLists(t, 3, 5)
		c.expect("at first", 3, 2, 3)
		release := <-c.admitted
		release()
		release()
		c.expect("one is done", 3, 1, 3)
		(<-c.admitted)()
		(<-c.admitted)()
		c.expect("three are done", 2, 0, 3)
		(<-c.admitted)()
		(<-c.admitted)()
		c.expect("all are done", 0, 0, 3)
	})
}

func TestLimiterGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWaitingLists(t, 1, 1)
		c.expect("at first", 1, 0, 1)
		reason := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error)
		go func() { // ended by cancel
			_, err := c.Acquire(ctx)
			failed <- err
		}()
		c.expect("another waits", 1, 1, 1)
		cancel(reason)
		if err := <-failed; !errors.Is(err, reason) {
			t.Errorf("Acquire() = %v, want the cause of the context", err)
		}
		c.expect("it has given up", 1, 0, 1)
		if _, err := c.Acquire(ctx); !errors.Is(err, reason) {
			t.Errorf("Acquire() with an ended context = %v, want its cause", err)
		}
		// A caller that gives up after it got a slot releases the slot.
		(<-c.admitted)()
		c.cancelWait(c.queue(false))
		c.expect("all are gone", 0, 0, 1)
	})
}

func TestLimiterShrinksAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newWaitingLists(t, 8, 10)
		c.expect("at first", 8, 2, 8)
		c.throttled(5 * time.Second)
		c.throttled(0)
		c.expect("a burst of 429s counts once", 8, 2, 4)
		for range 5 {
			(<-c.admitted)()
		}
		c.expect("fewer are admitted", 4, 1, 4)
		c.succeeded()
		c.expect("the server is left alone", 4, 1, 4)
		time.Sleep(5 * time.Second)
		c.succeeded()
		c.expect("afterwards a success brings one back", 5, 0, 5)
		for range 20 {
			c.throttled(0)
			time.Sleep(shrinkPause)
		}
		c.expect("one is left", 5, 0, 1)
		for range 20 {
			c.succeeded()
		}
		c.expect("all are back", 5, 0, 8)
		for range 5 {
			(<-c.admitted)()
		}
	})
}

// releaseAll completes all lists of some clusters.
func releaseAll(clusters ...*waitingLists) {
	for completed := true; completed; {
		completed = false
		synctest.Wait()
		for _, c := range clusters {
			for len(c.admitted) > 0 {
				(<-c.admitted)()
				completed = true
			}
		}
	}
}

// TestUnresponsiveClustersTakeNoSlots verifies that lists without an answer do not delay other clusters.
func TestUnresponsiveClustersTakeNoSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewListPool(4)
		unresponsive := newPooledLists(t, pool, 10, 8)
		unresponsive.expect("at first", 4, 4, 10)
		healthy := newPooledLists(t, pool, 10, 6)
		unresponsive.expect("the dark cluster has all slots", 4, 4, 10)
		time.Sleep(answerTimeout)
		unresponsive.expect("it does not answer", 4, 4, 10)
		healthy.expect("the other cluster has all slots", 4, 2, 10)
		for range 3 {
			(<-unresponsive.admitted)()
		}
		unresponsive.expect("it is limited to its share of 2", 2, 3, 10)
		unresponsive.recordContact(true)
		unresponsive.expect("it answers while no slot is free", 2, 3, 10)
		(<-healthy.admitted)()
		healthy.expect("its two lists count", 3, 2, 10)
		unresponsive.recordContact(false)
		healthy.expect("the connection fails", 4, 1, 10)
		releaseAll(unresponsive, healthy)
	})
}

// TestClusterStopsAnsweringDuringLists verifies that the response to one list does not let the others hold
// their slots when no more responses follow.
func TestClusterStopsAnsweringDuringLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewListPool(4)
		unresponsive := newPooledLists(t, pool, 10, 4)
		unresponsive.expect("at first", 4, 0, 10)
		healthy := newPooledLists(t, pool, 10, 4)
		time.Sleep(answerTimeout / 2)
		unresponsive.recordContact(true)
		(<-unresponsive.admitted)()
		time.Sleep(answerTimeout - time.Millisecond)
		healthy.expect("one slot was released", 1, 3, 10)
		healthy.recordContact(true)
		time.Sleep(time.Millisecond)
		healthy.expect("the other cluster has all slots", 4, 0, 10)
		releaseAll(unresponsive, healthy)
	})
}

// TestListPoolIsFair verifies that a free slot goes to the cluster with the fewest lists.
func TestListPoolIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := NewListPool(4)
		first := newPooledLists(t, pool, 10, 8)
		first.recordContact(true)
		first.expect("the first alone", 4, 4, 10)
		second, third := newPooledLists(t, pool, 10, 8), newPooledLists(t, pool, 1, 8)
		second.expect("no slot is free", 0, 8, 10)
		first.recordContact(true)
		for range 3 {
			(<-first.admitted)()
		}
		first.expect("three slots were released, one is its own again", 2, 3, 10)
		second.expect("the second has a slot", 1, 7, 10)
		third.expect("the third has a slot", 1, 7, 1)
		second.cancelWait(second.queue(false))
		second.expect("a list gave up", 1, 7, 10)
		releaseAll(first, second, third)
	})
}
