package informer

import "sync/atomic"

// Events has the numbers of events since the informer was created.
type Events struct {
	// Adds includes the objects of the first list. Updates does not include resyncs and relists of unchanged
	// objects.
	Adds, Updates, Deletes int64
	// Relists is the number of lists after the first one of an incarnation or partition.
	Relists int64
	// LeftShard is the number of objects that left the shard. Deletes does not include them.
	LeftShard int64
}

// Events returns the counts.
func (i *Informer) Events() Events {
	return Events{
		Adds: i.events.adds.Load(), Updates: i.events.updates.Load(), Deletes: i.events.deletes.Load(),
		Relists: i.events.relists.Load(), LeftShard: i.events.leftShard.Load(),
	}
}

type eventCounts struct{ adds, updates, deletes, relists, leftShard atomic.Int64 }

func (c *eventCounts) count(notifications ...notification) {
	var tally eventTally
	for i := range notifications {
		tally.add(&notifications[i])
	}
	c.add(tally)
}

type eventTally struct{ adds, updates, deletes, leftShard int64 }

func (t *eventTally) add(n *notification) {
	switch {
	case n.kind == kindAdd:
		t.adds++
	case n.kind == kindUpdate && !n.resync:
		t.updates++
	case n.kind == kindDelete || n.kind == kindLostDeletion:
		t.deletes++
	case n.kind == kindLeftShard:
		t.leftShard++
	}
}

func (c *eventCounts) add(t eventTally) {
	addIfNonZero(&c.adds, t.adds)
	addIfNonZero(&c.updates, t.updates)
	addIfNonZero(&c.deletes, t.deletes)
	addIfNonZero(&c.leftShard, t.leftShard)
}

func addIfNonZero(to *atomic.Int64, n int64) {
	if n > 0 {
		to.Add(n)
	}
}
