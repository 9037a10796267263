package apiserver

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

func (s *Storage) ServedTypes() (types []readapi.Type, generation uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sorted := slices.SortedFunc(maps.Values(s.mu.types), (*collection).compareType)
	return naming.Map(sorted, func(c *collection) readapi.Type { return c.typ }), s.mu.typesVersion
}

func (s *Storage) Collection(gr schema.GroupResource) readapi.Collection {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[gr]
	if c == nil {
		return nil
	}
	return &servedCollection{storage: s, collection: c, typ: c.typ, rules: c.rules, ended: c.ended,
		lastVersion: c.lastVersion}
}

// servedCollection is a collection with the type that it had when the request began.
type servedCollection struct {
	storage     *Storage
	collection  *collection
	typ         readapi.Type
	rules       Rules
	ended       <-chan struct{}
	lastVersion *uint64 // that watches send; zero for all
}

func (c *servedCollection) Type() readapi.Type     { return c.typ }
func (c *servedCollection) Ended() <-chan struct{} { return c.ended }

func (c *servedCollection) Refused(string) error {
	if c.storage.options.Refuse == nil {
		return nil
	}
	c.storage.mu.Lock()
	hasObjects := len(c.collection.objects) > 0
	c.storage.mu.Unlock()
	return c.storage.options.Refuse(c.typ.GroupResource(), hasObjects)
}

func (c *servedCollection) ResourceVersion() uint64 {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	return c.storage.mu.version
}

func (c *servedCollection) Get(key string) readapi.Object { return objectOrNil(c.get(key)) }

func (c *servedCollection) get(key string) *object {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	return c.collection.objects[key]
}

func (c *servedCollection) Snapshot(version uint64) readapi.Snapshot {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	return c.collection.snapshotAt(cmp.Or(version, c.storage.mu.version))
}

func (c *servedCollection) Since(version uint64) readapi.Changes {
	c.storage.mu.Lock()
	defer c.storage.mu.Unlock()
	changes := c.collection.since(version)
	// A watch of a removed type must not skip the first objects of the next type of that name.
	changes.ResourceVersion = cmp.Or(c.collection.removedAtVersion, c.storage.mu.version)
	if last := *c.lastVersion; last > 0 {
		isLater := func(change readapi.Change) bool { return change.ResourceVersion > last }
		if i := slices.IndexFunc(changes.List, isLater); i >= 0 {
			changes.List = changes.List[:i]
		}
		changes.ResourceVersion = max(version, last)
	}
	return changes
}
