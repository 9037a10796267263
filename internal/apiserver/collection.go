package apiserver

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/serving/readapi"
)

// collection is a type with its objects and their latest changes. The lock of the storage protects it.
type collection struct {
	typ   readapi.Type
	rules Rules
	// definition is the name of the CustomResourceDefinition of the type. Empty if it has none.
	definition string
	// terminating is set while the CustomResourceDefinition is being deleted. It accepts no objects then.
	terminating bool
	// removedAtVersion is the resource version at which the type was removed. 0 if it exists.
	removedAtVersion uint64
	objects          map[string]*object
	// inVersion has the objects in each version, if the storage keeps all versions and the type has several.
	inVersion map[string]*collection

	// sortedObjects are the objects of the latest snapshot, sorted by key. Snapshots share the
	// immutable slice. changed maps keys to the objects that changed after that snapshot; a removed
	// object is nil. Both are nil before the first snapshot.
	sortedObjects []*object
	changed       map[string]*object

	// history contains the latest changes in order. Its elements are immutable.
	history []readapi.Change
	// oldest is the resource version from which on the history is complete.
	oldest uint64
	// next is closed by the next change. Nil if no caller waits.
	next chan struct{}
	// ended is closed and replaced when the type changes or is removed: watches end, as on a kube-apiserver.
	ended       chan struct{}
	lastVersion *uint64 // that the watches send; zero for all
}

func newCollection(version uint64) *collection {
	return &collection{objects: map[string]*object{}, oldest: version, ended: make(chan struct{}),
		lastVersion: new(uint64)}
}

// compareType orders collections by the group and the plural name of their types.
func (c *collection) compareType(other *collection) int {
	return cmp.Or(cmp.Compare(c.typ.Group, other.typ.Group),
		cmp.Compare(c.typ.Names.Plural, other.typ.Names.Plural))
}

// put stores an object, or removes it if o is nil. It does not change the history.
func (c *collection) put(key string, o *object) {
	if o == nil {
		delete(c.objects, key)
	} else {
		c.objects[key] = o
	}
	if c.changed != nil {
		c.changed[key] = o
	}
}

// record adds a change to the history, which keeps at least the latest keep changes.
func (c *collection) record(change readapi.Change, keep int) {
	if len(c.history)-keep >= keep { // len >= 2*keep, without overflow
		dropped := len(c.history) - keep
		c.oldest = c.history[dropped-1].ResourceVersion
		c.history = slices.Clone(c.history[dropped:]) // readers use the old array
	}
	c.history = append(c.history, change)
	c.notify()
}

func (c *collection) dropHistory(version uint64) {
	c.history, c.oldest = nil, version
	c.notify()
}

func (c *collection) notify() {
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

// endWatches ends the watches of the type after they have sent all changes.
func (c *collection) endWatches() {
	close(c.ended)
	c.ended, c.lastVersion = make(chan struct{}), new(uint64)
}

// snapshot returns all objects by key. The slice is immutable.
func (c *collection) snapshot() []*object {
	switch {
	case c.changed == nil:
		c.sortedObjects = slices.SortedFunc(maps.Values(c.objects),
			func(a, b *object) int { return strings.Compare(a.key, b.key) })
		c.changed = map[string]*object{}
	case len(c.changed) > 0:
		sorted := make([]*object, 0, len(c.objects))
		for o := range readapi.NewSnapshot(0, c.sortedObjects, c.changed).Range("", "") {
			sorted = append(sorted, o.(*object))
		}
		c.sortedObjects, c.changed = sorted, map[string]*object{}
	}
	return c.sortedObjects
}

// snapshotAt returns the objects at a version, which must not be newer than the storage. It returns nil
// if the history does not reach back to the version.
func (c *collection) snapshotAt(version uint64) readapi.Snapshot {
	if version < c.oldest {
		return nil
	}
	undo := map[string]*object{}
	for _, change := range slices.Backward(c.history) {
		if change.ResourceVersion <= version {
			break
		}
		key := cmp.Or(change.After, change.Before).Key()
		undo[key], _ = change.Before.(*object)
	}
	return readapi.NewSnapshot(version, c.snapshot(), undo)
}

func (c *collection) since(version uint64) readapi.Changes {
	if c.next == nil {
		c.next = make(chan struct{})
	}
	changes := readapi.Changes{Oldest: c.oldest, Next: c.next}
	if version >= c.oldest {
		at, _ := slices.BinarySearchFunc(c.history, version+1,
			func(c readapi.Change, v uint64) int { return cmp.Compare(c.ResourceVersion, v) })
		changes.List = c.history[at:len(c.history):len(c.history)]
	}
	return changes
}
