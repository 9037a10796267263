package query

import "slices"

// referenceCondition matches objects by the keys that the reference graph returned.
type referenceCondition struct {
	keys     []string
	set      map[string]struct{}
	snapshot Snapshot
	query    string
	meter    *workMeter
}

func (l *referenceCondition) cost() cost    { return costLookup }
func (l *referenceCondition) text() string  { return l.query }
func (l *referenceCondition) size() int     { return len(l.keys) }
func (l *referenceCondition) repeats() bool { return false }

func (l *referenceCondition) holds(object string, _ any) bool {
	_, ok := l.set[object]
	return ok && l.meter.spend(1)
}

// objects skips keys that are not in the snapshot: the graph can be ahead of the snapshot or behind it.
func (l *referenceCondition) objects(yield func(object string, item any) bool) {
	for _, key := range l.keys {
		item, ok := l.snapshot.Get(key)
		if !l.meter.spend(1) || ok && !yield(key, item) {
			return
		}
	}
}

func (c *compiler) compileLinking(q *referenceQuery) (compiledCondition, error) {
	if c.references == nil {
		return nil, ErrNoReferences
	}
	if names := c.references.Names(); q.kind != linkFrom && q.reference != "" &&
		!slices.Contains(names, q.reference) {
		return nil, &UnknownReferenceError{Name: q.reference, Known: names}
	}
	l := &referenceCondition{snapshot: c.snapshot, query: q.String(), meter: c.meter}
	switch q.kind {
	case linkDangling:
		l.keys = c.references.Dangling(q.reference)
		for _, u := range c.references.Unchecked(q.reference) {
			c.warn("%s: %s, so that they do not count as dangling", q, u)
		}
	case linkTo:
		l.keys = c.references.KeysReferringTo(q.object, q.reference)
		if n := c.references.CountRecreated(q.object, q.reference); n > 0 {
			c.warn("%s: %d more refer to another object of that name, with another UID", q, n)
		}
	case linkFrom:
		l.keys = c.references.KeysReferredBy(q.object, q.reference)
	}
	if q.kind != linkDangling && len(l.keys) == 0 {
		if reason := c.references.WhyNothing(q.object, q.kind == linkFrom); reason != "" {
			c.warn("%s: %s", q, reason)
		}
	}
	l.set = keySet(l.keys)
	return l, nil
}

var _ candidateSource = (*referenceCondition)(nil)
