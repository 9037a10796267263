package readapi

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/watch"
)

// collection is a type with its objects and their latest changes. The storage's lock protects it.
type collection struct {
	typ Type
	// custom is the name of the CustomResourceDefinition that defines the type, or empty.
	custom string
	// terminating is set when that is being deleted: nothing is created any more.
	terminating bool
	// removed is the version with which the type went; 0 while it is there. What comes later under its name
	// is another type.
	removed uint64
	objects map[string]*object

	// sorted are all objects by key, but for dirty, which lists what changed since, nil for what is gone. The
	// slice itself never changes: snapshots share it. Both are nil until somebody wants a snapshot.
	sorted []*object
	dirty  map[string]*object

	// log are the latest changes in order. What it holds never changes either.
	log []Change
	// floor is the version since which the log is complete.
	floor uint64
	// changed is closed with the next change; nil as long as nobody waits for one.
	changed chan struct{}
	// ended is closed, and replaced, when the type changes or goes: watches end, as on a kube-apiserver.
	ended chan struct{}
}

func newCollection(t Type, version uint64) *collection {
	return &collection{
		typ: t, objects: map[string]*object{}, floor: version, ended: make(chan struct{}),
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
func (c *collection) record(e Change, keep int) {
	if len(c.log)-keep >= keep { // twice as many, without an overflow
		dropped := len(c.log) - keep
		c.floor = c.log[dropped-1].ResourceVersion
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
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// snapshot returns all objects by key. The slice may be kept but not be changed.
func (c *collection) snapshot() []*object {
	switch {
	case c.dirty == nil:
		c.sorted = slices.SortedFunc(maps.Values(c.objects),
			func(a, b *object) int { return strings.Compare(a.key, b.key) })
		c.dirty = map[string]*object{}
	case len(c.dirty) > 0:
		c.sorted = newSnapshot(0, c.sorted, c.dirty).all()
		c.dirty = map[string]*object{}
	}
	return c.sorted
}

// snapshotAt returns the objects as they were at a version, which must not be in the future. It is false when
// that is forgotten.
func (c *collection) snapshotAt(version uint64) (*snapshot[*object], bool) {
	if version < c.floor {
		return nil, false
	}
	undo := map[string]*object{}
	for _, e := range slices.Backward(c.log) {
		if e.ResourceVersion <= version {
			break
		}
		before, _ := e.Before.(*object)
		undo[e.key()] = before
	}
	return newSnapshot(version, c.snapshot(), undo), true
}

// since returns the changes after a version.
func (c *collection) since(version uint64) Changes {
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	changes := Changes{Oldest: c.floor, Next: c.changed}
	if version >= c.floor {
		at, _ := slices.BinarySearchFunc(c.log, version+1,
			func(e Change, v uint64) int { return cmp.Compare(e.ResourceVersion, v) })
		changes.List = c.log[at:len(c.log):len(c.log)]
	}
	return changes
}

func (e Change) key() string {
	if e.After != nil {
		return e.After.Key()
	}
	return e.Before.Key()
}

// seenBy returns how a selection sees the change: an object that leaves it is deleted, one that enters it is
// added. The type is empty when it sees nothing. Of what is deleted it is the last state, with another
// version.
func (e Change) seenBy(matches func(Object) bool) (watch.EventType, Object) {
	was := e.Before != nil && matches(e.Before)
	is := e.After != nil && matches(e.After)
	switch {
	case is && was:
		return watch.Modified, e.After
	case is:
		return watch.Added, e.After
	case was:
		return watch.Deleted, e.Before
	}
	return "", nil
}
