package dynamicinformer

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// keptObject is an object of a content that is saved.
type keptObject struct {
	key  string
	item store.Item
}

// inOrder returns a content in the order of its keys, in which neighbours have much in common.
func inOrder(now *keptContent) []keptObject {
	all := make([]keptObject, 0, now.Len())
	for key, item := range now.All {
		if now.has(key) {
			all = append(all, keptObject{key, item})
		}
	}
	slices.SortFunc(all, func(a, b keptObject) int { return strings.Compare(a.key, b.key) })
	return all
}

// writeAll writes a content in the order of its keys.
func writeAll(w persistence.Writer, now *keptContent) error {
	for _, o := range inOrder(now) {
		if err := readJSON(o.key, o.item, (*packed.Object).Peek, w.Put); err != nil {
			return err
		}
	}
	return nil
}

// blockSize is what the bodies of a block come to: enough for objects to share what they have in common, and
// no more than can be decompressed for the sake of one.
const blockSize = 64 << 10

// writeBlocks is writeAll in blocks. What they cannot take comes at the end.
func writeBlocks(w persistence.BlockWriter, now *keptContent) error {
	var block packed.BlockWriter
	var others []keptObject
	for _, o := range inOrder(now) {
		added, err := addToBlock(&block, o)
		if err != nil {
			return err
		}
		if !added {
			others = append(others, o)
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
	for _, o := range others {
		if err := readJSON(o.key, o.item, (*packed.Object).Peek, w.Put); err != nil {
			return err
		}
	}
	return nil
}

// addToBlock adds an object in any form.
func addToBlock(block *packed.BlockWriter, o keptObject) (added bool, err error) {
	if object, ok := o.item.(*packed.Object); ok {
		return block.Add(object)
	}
	err = readJSON(o.key, o.item, (*packed.Object).Peek, func(_ string, json []byte) error {
		object, err := (*packed.Packer)(nil).Pack(json)
		if err == nil {
			added, err = block.Add(object)
		}
		return err
	})
	return added, err
}

// writeChanges writes what differs between two contents.
func (k *keeper) writeChanges(w persistence.Writer, saved, now *keptContent) (err error) {
	form := k.informer.core.Form()
	now.Since(saved.Snapshot, func(key string, old, next store.Item) bool {
		switch {
		case !now.has(key) && !saved.has(key):
		case next == nil:
			err = w.Delete(key)
		case old == nil || !form.Same(old, next):
			err = readJSON(key, next, (*packed.Object).Peek, w.Put)
		}
		return err == nil
	})
	return err
}
