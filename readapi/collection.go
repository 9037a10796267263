package readapi

import (
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// collection is a type with its objects and their latest changes. The storage's lock protects it.
type collection struct {
	typ Type
	// custom is the name of the CustomResourceDefinition that defines the type, or empty.
	custom  string
	objects map[string]*object

	// sorted are all objects by key, but for dirty, which lists what changed since, nil for what is gone. The
	// slice itself never changes: snapshots share it. Both are nil until somebody wants a snapshot.
	sorted []*object
	dirty  map[string]*object

	// log are the latest changes in order. What it holds never changes either.
	log []change
	// floor is the version since which the log is complete.
	floor uint64
	// changed is closed and replaced with every change.
	changed chan struct{}
	// ended is closed, and replaced, when the type changes or goes: watches end, as on a kube-apiserver.
	ended chan struct{}
}

// change is one step in the history of an object. before and after are nil where it did not or does not exist.
type change struct {
	version       uint64
	before, after *object
}

func newCollection(t Type, version uint64) *collection {
	return &collection{
		typ: t, objects: map[string]*object{}, floor: version,
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
}

// put stores a state, or with nil removes it, without a trace in the log.
func (c *collection) put(key string, o *object) {
	if o == nil {
		delete(c.objects, key)
	} else {
		c.objects[key] = o
	}
	if c.dirty != nil {
		c.dirty[key] = o
	}
}

// record adds a change to the log, of which at least the last keep ones stay.
func (c *collection) record(e change, keep int) {
	if len(c.log) >= 2*keep {
		dropped := len(c.log) - keep
		c.floor = c.log[dropped-1].version
		c.log = slices.Clone(c.log[dropped:]) // readers go on with the old one
	}
	c.log = append(c.log, e)
	c.notify()
}

// forget drops the log: who wants to know what was before version has to list.
func (c *collection) forget(version uint64) {
	c.log, c.floor = nil, version
	c.notify()
}

func (c *collection) notify() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// snapshot returns all objects by key. The slice may be kept but not be changed.
func (c *collection) snapshot() []*object {
	switch {
	case c.dirty == nil:
		c.sorted = slices.SortedFunc(maps.Values(c.objects), func(a, b *object) int { return strings.Compare(a.key, b.key) })
		c.dirty = map[string]*object{}
	case len(c.dirty) > 0:
		c.sorted = patch(c.sorted, c.dirty)
		c.dirty = map[string]*object{}
	}
	return c.sorted
}

// snapshotAt returns the objects as they were at a version, which must not be in the future. It is false when
// that is forgotten.
func (c *collection) snapshotAt(version uint64) ([]*object, bool) {
	if version < c.floor {
		return nil, false
	}
	undo := map[string]*object{}
	for _, e := range slices.Backward(c.log) {
		if e.version <= version {
			break
		}
		undo[e.key()] = e.before
	}
	if len(undo) == 0 {
		return c.snapshot(), true
	}
	return patch(c.snapshot(), undo), true
}

// since returns the changes after a version, and a channel that the next one closes. The error is 410 when they
// are forgotten.
func (c *collection) since(version uint64) ([]change, <-chan struct{}, error) {
	if version < c.floor {
		return nil, nil, errTooOld(version, c.floor)
	}
	at, _ := slices.BinarySearchFunc(c.log, version+1, func(e change, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return c.log[at:len(c.log):len(c.log)], c.changed, nil
}

// patch returns sorted with changes applied: objects that are added or replace others, or nil for what goes.
func patch(sorted []*object, changes map[string]*object) []*object {
	out := make([]*object, 0, len(sorted)+len(changes))
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		at, _ := slices.BinarySearchFunc(sorted, key, func(o *object, key string) int { return strings.Compare(o.key, key) })
		out = append(out, sorted[:at]...)
		if sorted = sorted[at:]; len(sorted) > 0 && sorted[0].key == key {
			sorted = sorted[1:]
		}
		if o := changes[key]; o != nil {
			out = append(out, o)
		}
	}
	return append(out, sorted...)
}

func (e change) key() string {
	if e.after != nil {
		return e.after.key
	}
	return e.before.key
}

// seenBy returns how a selection sees the change: an object that leaves it is deleted, one that enters it is
// added. The type is empty when it sees nothing.
func (e change) seenBy(matches func(*object) bool) (watch.EventType, *object, error) {
	was := e.before != nil && matches(e.before)
	is := e.after != nil && matches(e.after)
	switch {
	case is && was:
		return watch.Modified, e.after, nil
	case is:
		return watch.Added, e.after, nil
	case was:
		last, err := e.before.as(e.version)
		if err != nil {
			return "", nil, apierrors.NewInternalError(err)
		}
		return watch.Deleted, last, nil
	}
	return "", nil, nil
}
