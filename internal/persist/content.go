package persist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

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
	if c.namespaces == nil && other.namespaces == nil {
		return c.ResourceVersion() == other.ResourceVersion()
	}
	return c.namespaces != nil && other.namespaces != nil && maps.Equal(c.namespaces, other.namespaces)
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
// Snapshots are not comparable if one saves a namespace that the other contains but does not save.
func (c *persistedSnapshot) isComparable(next *persistedSnapshot) bool {
	return (c.namespaces == nil) == (next.namespaces == nil) && c.hasNoneOfOthers(next) &&
		next.hasNoneOfOthers(c)
}

// hasNoneOfOthers reports whether the snapshot contains no object of the namespaces that only other saves.
func (c *persistedSnapshot) hasNoneOfOthers(other *persistedSnapshot) bool {
	for namespace := range other.namespaces {
		if c.namespaces[namespace] == "" && c.hasObjectsIn(namespace) {
			return false
		}
	}
	return true
}

func (c *persistedSnapshot) hasObjectsIn(namespace string) bool {
	keys, err := c.KeysByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // the index does not exist
		keys = c.Keys()
	}
	return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, namespace+"/") })
}

// formatVersions encodes the resource versions of namespaces for a checkpoint.
func formatVersions(versions map[string]string) string {
	parts := make([]string, 0, len(versions))
	for _, namespace := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, namespace+"="+versions[namespace])
	}
	return strings.Join(parts, ",")
}

func parseVersions(text string) (map[string]string, error) {
	versions := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		namespace, version, found := strings.Cut(part, "=")
		if !found || namespace == "" || version == "" {
			return nil, fmt.Errorf("parse checkpoint: %q is not NAMESPACE=VERSION", part)
		}
		versions[namespace] = version
	}
	return versions, nil
}

type entry struct {
	key  string
	item store.Item
}

// sortedEntries returns the saved objects in the order of their keys. Neighbours have much in common, which
// compresses well.
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

// blockSize is the size of the bodies of a block. It lets objects share repeated text, and limits the text
// that is decompressed to read one object.
const blockSize = 64 << 10

// recordWriter encodes objects and changes as records. A block has its index as head; a record of changes has
// only a head.
type recordWriter struct {
	put     persistence.PutRecord
	block   packed.BlockWriter
	index   []byte
	changes []byte
}

// writeAll writes a content as blocks, followed by the objects that do not fit into blocks.
func (w *recordWriter) writeAll(current *persistedSnapshot) error {
	var others []entry
	for _, e := range current.sortedEntries() {
		added, err := w.add(e)
		if err == nil && !added {
			others = append(others, e)
		}
		if err == nil && w.block.Size() >= blockSize {
			err = w.flushBlock()
		}
		if err != nil {
			return err
		}
	}
	if err := w.flushBlock(); err != nil {
		return err
	}
	for _, e := range others {
		if err := w.change(e.key, e.item); err != nil {
			return err
		}
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
	w.changes = append(binary.AppendUvarint(w.changes, uint64(len(key))), key...)
	if item == nil {
		w.changes = append(w.changes, 0)
	} else if err := store.ReadJSON(key, item, (*packed.Object).PeekJSON, func(_ string, json []byte) error {
		w.changes = append(binary.AppendUvarint(w.changes, uint64(len(json))+1), json...)
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

var errDamagedChanges = errors.New("the record of changes is damaged")

// readChanges calls onChange for each change of a record. json is nil for a deletion, and valid until
// onChange returns.
func readChanges(text []byte, onChange func(key string, json []byte) error) error {
	cut := func(bias uint64) (part []byte, ok bool) {
		length, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, false
		}
		if text = text[n:]; length < bias {
			return nil, true
		}
		if length -= bias; length > uint64(len(text)) {
			return nil, false
		}
		part, text = text[:length:length], text[length:]
		return part, true
	}
	for len(text) > 0 {
		key, hasKey := cut(0)
		json, hasJSON := cut(1)
		if !hasKey || !hasJSON {
			return errDamagedChanges
		}
		if err := onChange(string(key), json); err != nil {
			return err
		}
	}
	return nil
}

// writeChanges writes the difference between two contents.
func (w *recordWriter) writeChanges(format store.Format, saved, current *persistedSnapshot) (err error) {
	current.Diff(saved.Snapshot, func(key string, old, next store.Item) bool {
		switch {
		case !current.includesKey(key) && !saved.includesKey(key):
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
