package informer

// Events has the numbers of events since the informer was created.
type Events struct {
	// Adds includes the objects of the first list. Updates omits resyncs and relists of unchanged ones.
	Adds, Updates, Deletes int64
	// Relists is the number of lists after the first one of an incarnation or partition.
	Relists int64
	// LeftShard is the number of objects that left the shard. Deletes does not include them.
	LeftShard int64
}

// Events returns the counts.
func (i *Informer) Events() Events {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.events
}

func (e *Events) add(n *notification) {
	switch {
	case n.kind == kindAdd:
		e.Adds++
	case n.kind == kindUpdate && !n.resync:
		e.Updates++
	case n.kind == kindDelete || n.kind == kindLostDeletion:
		e.Deletes++
	case n.kind == kindLeftShard:
		e.LeftShard++
	}
}
