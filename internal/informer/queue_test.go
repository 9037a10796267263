package informer

import (
	"sync"
	"testing"
)

func TestQueueKeepsOrderAndDepth(t *testing.T) {
	q := newQueue()
	marked := false
	q.push(added("1", true), added("2", false))
	q.push(marker(func() { marked = true }))
	q.push()
	q.push(lost("3", "3"))
	if got := q.depth.Load(); got != 3 {
		t.Errorf("the depth is %d, want 3: marks do not count", got)
	}
	batch, ok := q.take(nil)
	if !ok || len(batch) != 4 {
		t.Fatalf("took %d, %v", len(batch), ok)
	}
	batch[2].deliver(nil, view{})
	if batch[0].current != "1" || batch[1].current != "2" || !marked || batch[3].kind != kindLost {
		t.Errorf("took %v", batch)
	}
}

func TestQueueReusesOnlySmallSlices(t *testing.T) {
	q := newQueue()
	small, large := make([]notification, 3, queueKeep), make([]notification, 3, queueKeep+1)
	q.push(added(1, false))
	q.take(small)
	q.push(added(2, false))
	batch, _ := q.take(large)
	if cap(batch) != queueKeep {
		t.Errorf("the small slice was not used again: capacity %d", cap(batch))
	}
	q.push(added(3, false))
	if batch, _ = q.take(nil); cap(batch) > queueKeep {
		t.Errorf("the large slice is kept: capacity %d", cap(batch))
	}
}

func TestClosedQueueIgnoresAndReleases(t *testing.T) {
	q := newQueue()
	taken := make(chan bool, 1)
	go func() { // ended by close
		_, ok := q.take(nil)
		taken <- ok
	}()
	q.close()
	q.close()
	if <-taken {
		t.Error("a closed queue was taken from")
	}
	q.push(added(1, false))
	if q.depth.Load() != 0 {
		t.Error("a closed queue grows")
	}
}

func TestQueueUnderManyProducers(t *testing.T) {
	const producers, each = 8, 2000
	q := newQueue()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() { // ends after its notifications
			for n := range each {
				q.push(notification{current: [2]int{p, n}})
			}
		})
	}
	next := [producers]int{}
	var spare []notification
	for total := 0; total < producers*each; {
		batch, ok := q.take(spare)
		if !ok {
			t.Fatal("closed")
		}
		for k, n := range batch {
			from := n.current.([2]int)
			if next[from[0]] != from[1] {
				t.Fatalf("producer %d: got %d, want %d", from[0], from[1], next[from[0]])
			}
			next[from[0]]++
			batch[k] = notification{}
		}
		total += len(batch)
		spare = batch
	}
	wg.Wait()
}
