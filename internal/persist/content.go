package persist

import (
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// persistedSnapshot is the part of a snapshot that is saved: everything, or the namespaces with their own
// watches and the resource version of each.
type persistedSnapshot struct {
	*store.Snapshot
	namespaces map[string]string // nil: everything
}

// equal reports whether two contents of one incarnation have the same resource versions.
func (c *persistedSnapshot) equal(other *persistedSnapshot) bool {
	return c.isComparable(other) && maps.Equal(c.namespaces, other.namespaces) &&
		(c.namespaces != nil || c.ResourceVersion() == other.ResourceVersion())
}

func (c *persistedSnapshot) includesKey(key string) bool {
	if c.namespaces == nil {
		return true
	}
	namespace, _, _ := strings.Cut(key, "/")
	return c.namespaces[namespace] != ""
}

func (c *persistedSnapshot) countObjects() int {
	if c.namespaces == nil {
		return c.Len()
	}
	count := 0
	for key := range c.All {
		if c.includesKey(key) {
			count++
		}
	}
	return count
}

// isComparable reports whether the difference of the snapshots is the difference of the saved parts.
func (c *persistedSnapshot) isComparable(next *persistedSnapshot) bool {
	return (c.namespaces == nil) == (next.namespaces == nil) &&
		maps.EqualFunc(c.namespaces, next.namespaces, func(_, _ string) bool { return true })
}

type entry struct {
	key  string
	item store.Item
}

// sortedEntries returns the saved objects in the order of their keys. Neighbours have much in common.
func (c *persistedSnapshot) sortedEntries() []entry {
	entries := make([]entry, 0, c.Len())
	for key, item := range c.All {
		if c.includesKey(key) {
			entries = append(entries, entry{key, item})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	return entries
}

// blockSize is the size of the bodies of a block.
const blockSize = 64 << 10

// recordWriter encodes objects as blocks and as changes, which have only a head.
type recordWriter struct {
	put     persistence.PutRecord
	block   packed.BlockWriter
	index   []byte
	changes []byte
}

// writeAll writes a content as blocks. Objects that do not fit into blocks are written as changes.
func (w *recordWriter) writeAll(current *persistedSnapshot) error {
	for _, e := range current.sortedEntries() {
		added, err := w.add(e)
		switch {
		case err == nil && !added:
			err = w.change(e.key, e.item)
		case err == nil && w.block.Size() >= blockSize:
			err = w.flushBlock()
		}
		if err != nil {
			return err
		}
	}
	if err := w.flushBlock(); err != nil {
		return err
	}
	return w.flushChanges()
}

// add adds an object to the current block. It returns false if the object does not fit.
func (w *recordWriter) add(e entry) (added bool, err error) {
	if object, ok := e.item.(*packed.Object); ok {
		return w.block.Add(object)
	}
	err = store.ReadJSON(e.key, e.item, (*packed.Object).PeekJSON, func(_ string, json []byte) error {
		object, err := (*packed.Packer)(nil).Pack(json)
		if err == nil {
			added, err = w.block.Add(object)
		}
		return err
	})
	return added, err
}

// change adds a replaced object, or a deleted one if the item is nil.
func (w *recordWriter) change(key string, item store.Item) error {
	if item == nil {
		w.changes = packed.AppendChange(w.changes, key, nil)
	} else if err := store.ReadJSON(key, item, (*packed.Object).PeekJSON, func(_ string, json []byte) error {
		w.changes = packed.AppendChange(w.changes, key, json)
		return nil
	}); err != nil {
		return err
	}
	if len(w.changes) < 4*blockSize {
		return nil
	}
	return w.flushChanges()
}

func (w *recordWriter) flushBlock() error {
	if w.block.Count() == 0 {
		return nil
	}
	defer w.block.Reset()
	var bodies []byte
	w.index, bodies = w.block.AppendBlock(w.index[:0])
	return w.put(w.index, bodies)
}

func (w *recordWriter) flushChanges() error {
	if len(w.changes) == 0 {
		return nil
	}
	defer func() { w.changes = w.changes[:0] }()
	return w.put(w.changes, nil)
}

// writeChanges writes the difference between two contents.
func (w *recordWriter) writeChanges(format store.Format, saved, current *persistedSnapshot) (err error) {
	current.Diff(saved.Snapshot, func(key string, old, next store.Item) bool {
		switch {
		case !current.includesKey(key):
		case next == nil || old == nil || !format.Same(old, next):
			err = w.change(key, next)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	return w.flushChanges()
}
