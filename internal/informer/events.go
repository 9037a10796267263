package informer

import "sync/atomic"

// Events counts what has happened in the cache since the informer was made. All numbers only grow.
type Events struct {
	// Adds counts objects that appeared, those of the first list included; Updates changes of objects that were there;
	// Deletes objects that went. Updates without a change, as resyncs and relists make them, are not counted.
	Adds, Updates, Deletes int64
	// Relists counts the lists of everything, or of a part, after the first of a generation: a watch could not go on
	// where it ended, for example.
	Relists int64
	// Departures counts objects that left although they exist, as far as is known. They are not among Deletes.
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
	var adds, updates, deletes, departures int64
	for i := range notifications {
		switch n := &notifications[i]; {
		case n.kind == kindAdd:
			adds++
		case n.kind == kindUpdate && !n.resync:
			updates++
		case n.kind == kindDelete || n.kind == kindLost:
			deletes++
		case n.kind == kindDeparted:
			departures++
		}
	}
	add(&c.adds, adds)
	add(&c.updates, updates)
	add(&c.deletes, deletes)
	add(&c.departures, departures)
}

// add spares the processors' caches what adds nothing.
func add(to *atomic.Int64, n int64) {
	if n > 0 {
		to.Add(n)
	}
}
