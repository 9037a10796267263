package informer

import "sync/atomic"

// Events counts what has happened in the cache since the informer was made. All numbers only grow.
type Events struct {
	// Adds counts objects that appeared, those of the first list included; Updates changes of objects that
	// were there; Deletes objects that went. Updates without a change, as resyncs and relists make them, are
	// not counted.
	Adds, Updates, Deletes int64
	// Relists counts the lists of everything, or of a part, after the first of a generation: a watch could
	// not go on where it ended, for example.
	Relists int64
	// Departures counts objects that left although they exist, as far as is known. They are not among
	// Deletes.
	Departures int64
}

// Events returns the counts.
func (i *Informer) Events() Events {
	return Events{
		Adds: i.events.adds.Load(), Updates: i.events.updates.Load(), Deletes: i.events.deletes.Load(),
		Relists: i.events.relists.Load(), Departures: i.events.departures.Load(),
	}
}

// eventCounts is read without a lock.
type eventCounts struct{ adds, updates, deletes, relists, departures atomic.Int64 }

// count counts what notifications tell of.
func (c *eventCounts) count(notifications ...notification) {
	var sum tally
	for i := range notifications {
		sum.add(&notifications[i])
	}
	c.add(sum)
}

// tally is what some notifications tell of.
type tally struct{ adds, updates, deletes, departures int64 }

func (t *tally) add(n *notification) {
	switch {
	case n.kind == kindAdd:
		t.adds++
	case n.kind == kindUpdate && !n.resync:
		t.updates++
	case n.kind == kindDelete || n.kind == kindLost:
		t.deletes++
	case n.kind == kindDeparted:
		t.departures++
	}
}

func (c *eventCounts) add(t tally) {
	add(&c.adds, t.adds)
	add(&c.updates, t.updates)
	add(&c.deletes, t.deletes)
	add(&c.departures, t.departures)
}

// add spares the processors' caches what adds nothing.
func add(to *atomic.Int64, n int64) {
	if n > 0 {
		to.Add(n)
	}
}
