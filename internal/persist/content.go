package persist

import (
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

func (e entry) writeTo(w persistence.Writer) error {
	return store.ReadJSON(e.key, e.item, (*packed.Object).PeekJSON, w.Put)
}

func writeAll(w persistence.Writer, entries []entry) error {
	for _, e := range entries {
		if err := e.writeTo(w); err != nil {
			return err
		}
	}
	return nil
}

// blockSize is the size of the bodies of a block. It lets objects share repeated text, and limits the text
// that is decompressed to read one object.
const blockSize = 64 << 10

// writeBlocks writes a content as blocks, followed by the objects that do not fit into blocks.
func writeBlocks(w persistence.BlockWriter, current *persistedSnapshot) error {
	var block packed.BlockWriter
	var otherEntries []entry
	for _, e := range current.sortedEntries() {
		added, err := e.addTo(&block)
		if err != nil {
			return err
		}
		if !added {
			otherEntries = append(otherEntries, e)
		}
		if block.Size() >= blockSize {
			if err := w.PutBlock(block.Block()); err != nil {
				return err
			}
			block.Reset()
		}
	}
	if block.Count() > 0 {
		if err := w.PutBlock(block.Block()); err != nil {
			return err
		}
	}
	return writeAll(w, otherEntries)
}

// addTo adds an object to a block. It returns false if the object does not fit.
func (e entry) addTo(block *packed.BlockWriter) (added bool, err error) {
	if object, ok := e.item.(*packed.Object); ok {
		return block.Add(object)
	}
	err = store.ReadJSON(e.key, e.item, (*packed.Object).PeekJSON, func(_ string, json []byte) error {
		object, err := (*packed.Packer)(nil).Pack(json)
		if err == nil {
			added, err = block.Add(object)
		}
		return err
	})
	return added, err
}

// writeChanges writes the difference between two contents.
func writeChanges(w persistence.Writer, format store.Format, saved, current *persistedSnapshot) (err error) {
	current.Diff(saved.Snapshot, func(key string, old, next store.Item) bool {
		switch {
		case !current.includesKey(key) && !saved.includesKey(key):
		case next == nil:
			err = w.Delete(key)
		case old == nil || !format.Same(old, next):
			err = entry{key, next}.writeTo(w)
		}
		return err == nil
	})
	return err
}
