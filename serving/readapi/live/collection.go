package live

import (
	"iter"
	"slices"
	"sort"
	"strings"
	"weak"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/serving/readapi"
)

// collection is the cache of a type for one request. It ends with the epoch of the type's history.
type collection struct {
	*typeCache
	view  *bind.View
	typ   readapi.Type
	epoch int
	// droppedSelectable are the selectable fields that the cache drops. Requests by them are forwarded.
	droppedSelectable []string
	// usesIndexes is set if the request selects objects by indexes. indexLifetime and indexedSince apply to
	// it; see typeCache.
	usesIndexes             bool
	lifetime, indexLifetime *lifetime
	indexedSince            uint64
}

var (
	_ readapi.Collection = (*collection)(nil)
	_ readapi.Fields     = (*collection)(nil)
)

func (c *collection) Type() readapi.Type      { return c.typ }
func (c *collection) Ended() <-chan struct{}  { return c.requestLifetime().ended }
func (c *collection) ResourceVersion() uint64 { return c.completeUntil(c.informer.History()) }

func (c *collection) requestLifetime() *lifetime {
	if c.usesIndexes {
		return c.indexLifetime
	}
	return c.lifetime
}

// oldestVersion returns the version from which the request can continue.
func (c *collection) oldestVersion(history dynamicinformer.History) uint64 {
	oldest := max(c.oldest(history), c.keptSince)
	if c.usesIndexes {
		return max(oldest, c.indexedSince)
	}
	return oldest
}

func (c *collection) Get(key string) readapi.Object {
	if stored, ok := c.informer.Snapshot().Stored(key); ok {
		if o := c.object(key, stored); o != (object{}) {
			return o
		}
	}
	return nil
}

func (c *collection) Snapshot(version uint64) readapi.Snapshot {
	history := c.informer.History()
	if version == 0 {
		version = c.completeUntil(history)
	} else if version < c.oldestVersion(history) {
		return nil
	}
	base := c.sortedList(history)
	s := &snapshot{Snapshot: readapi.NewSnapshot(version, base.objects, base.changesTo(c, history, version)),
		base: base}
	if version >= history.ResourceVersion {
		s.indexedContent, s.collection = history.Snapshot, c
	}
	return s
}

// Since implements readapi.Collection. It ignores a version that a freshness check has confirmed beyond the
// history: the informer can still report changes of objects before that version.
func (c *collection) Since(version uint64) readapi.Changes {
	history := c.informer.History()
	changes := readapi.Changes{Oldest: c.oldestVersion(history), ResourceVersion: history.ResourceVersion,
		Next: history.Next}
	if history.Epoch != c.epoch || c.requestLifetime().expired.Load() {
		// versions of another epoch are not comparable
		changes.Oldest = max(changes.Oldest, version+1)
	}
	if version < changes.Oldest {
		return changes
	}
	first := sort.Search(history.Len(), func(i int) bool { return history.At(i).ResourceVersion > version })
	for i := first; i < history.Len(); i++ {
		change := history.At(i)
		changes.List = append(changes.List, readapi.Change{
			ResourceVersion: change.ResourceVersion, Before: c.objectOrNil(change.Key,
				change.Old), After: c.objectOrNil(change.Key, change.New),
		})
	}
	return changes
}

// sortedObjects has the objects at one version, sorted by key.
type sortedObjects struct {
	objects []object
	// version and epoch identify the state.
	version uint64
	epoch   int
}

// changesDivisor limits the changes that are merged into a sorted list: to an eighth of the list. With more
// changes, the list is sorted again.
const changesDivisor = 8

// sortedList returns a list sorted by key that differs little from the current state: the cached list if it
// is recent enough, otherwise a new list.
func (c *collection) sortedList(history dynamicinformer.History) *sortedObjects {
	c.mu.Lock()
	previous := c.mu.cachedList.Value()
	c.mu.Unlock()
	if previous != nil && previous.epoch == history.Epoch && previous.version >= history.Oldest {
		firstLater := sort.Search(history.Len(),
			func(i int) bool { return history.At(i).ResourceVersion > previous.version })
		if (history.Len()-firstLater)*changesDivisor <= len(previous.objects) {
			return previous
		}
	}
	sorted := &sortedObjects{version: history.ResourceVersion, epoch: history.Epoch,
		objects: make([]object, 0, history.Snapshot.Len())}
	for key, stored := range history.Snapshot.AllStored() {
		if o := c.object(key, stored); o != (object{}) {
			sorted.objects = append(sorted.objects, o)
		}
	}
	slices.SortFunc(sorted.objects, func(a, b object) int { return strings.Compare(a.key, b.key) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.cachedList = weak.Make(sorted)
	return sorted
}

// changesTo returns the changes from the list to another version of the same history, by key. The zero object
// means that the object is deleted.
func (s *sortedObjects) changesTo(c *collection, history dynamicinformer.History,
	version uint64) map[string]object {
	changes := map[string]object{}
	for i := range history.Len() {
		if change := history.At(i); change.ResourceVersion > s.version && change.ResourceVersion <= version {
			changes[change.Key] = c.object(change.Key, change.New)
		}
	}
	for i := history.Len() - 1; i >= 0; i-- {
		if change := history.At(i); change.ResourceVersion <= s.version && change.ResourceVersion > version {
			changes[change.Key] = c.object(change.Key, change.Old)
		}
	}
	return changes
}

// snapshot holds the objects at a version.
type snapshot struct {
	readapi.Snapshot
	base *sortedObjects // keeps the list for the next page
	// indexedContent is the cache at that version, or nil if the cache has changed since.
	indexedContent *dynamicinformer.Snapshot
	collection     *collection
}

var _ readapi.FieldIndexed = (*snapshot)(nil)

func (s *snapshot) RangeField(field, value, from, to string) (iter.Seq[readapi.Object], bool) {
	if s.indexedContent == nil {
		return nil, false
	}
	key, index, err := s.collection.indexKey(field, value)
	if err != nil || index == nil {
		return nil, false
	}
	keys, err := s.indexedContent.KeysByIndex(s.collection.view.NameIn(s.indexedContent, field), key)
	if err != nil {
		return nil, false // the index has been removed since the request began
	}
	return func(yield func(readapi.Object) bool) {
		for _, key := range keys {
			if key < from || to != "" && key >= to {
				continue
			}
			stored, _ := s.indexedContent.Stored(key)
			if o := s.collection.object(key, stored); o != (object{}) && !yield(o) {
				return
			}
		}
	}, true
}
