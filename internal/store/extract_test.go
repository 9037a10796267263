package store

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/crdcache/crdcache/internal/packed"
)

// TestExtractBlocks fills a store with blocks, changes an object of each block, and extracts all other
// objects. An earlier snapshot is unaffected.
func TestExtractBlocks(t *testing.T) {
	s := New(Options{Format: NewPacked(nil, nil)})
	if !s.ShouldExtractBlocks() || New(Options{}).ShouldExtractBlocks() {
		t.Error("ShouldExtractBlocks() is not true for packed stores only")
	}
	const objects, each = 3000, 30
	texts := map[string]string{}
	var keyed []KeyedItem
	for n := 0; n < objects; n += each {
		var w packed.BlockWriter
		for k := n; k < n+each; k++ {
			text := fmt.Sprintf(`{"apiVersion":"v1","kind":"K","metadata":{"name":"o%d","namespace":"n%d","resourceVersion":"%d"},"spec":{"n":%d}}`, k, k%7, k, k)
			texts[fmt.Sprintf("n%d/o%d", k%7, k)] = text
			if added, err := w.Add(s.format.Packer().TryPack([]byte(text))); err != nil || !added {
				t.Fatalf("Add() = %v, %v, want true", added, err)
			}
		}
		head, bodies := w.AppendBlock(nil)
		bodies = bytes.Clone(bodies)
		read, err := packed.ReadBlock(head, func() ([]byte, error) { return bodies, nil }, len(bodies))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range read {
			keyed = append(keyed, KeyedItem{Key: o.Key(), Item: s.format.Item(o)})
		}
	}
	if _, ok := s.Replace(s.PrepareAll(keyed), "7"); !ok {
		t.Fatal("Replace() = false, want true")
	}
	before := s.Snapshot()
	for k := 0; k < objects; k += each {
		key := fmt.Sprintf("n%d/o%d", k%7, k)
		texts[key] = fmt.Sprintf(`{"apiVersion":"v1","kind":"K","metadata":{"name":"o%d","namespace":"n%d","resourceVersion":"%d"}}`, k, k%7, objects+k)
		o := s.format.Packer().TryPack([]byte(texts[key]))
		if _, ok := s.Put(s.Prepare(KeyedItem{Key: key, Item: o})); !ok {
			t.Fatal("Put() = false, want true")
		}
	}
	calls := 0
	for next := s.ExtractBlocks(0); next != 0; next = s.ExtractBlocks(next) {
		calls++
	}
	if calls == 0 {
		t.Error("one call extracted all blocks, want several calls")
	}
	now := s.Snapshot()
	var size int64
	for key, item := range now.All {
		o := item.(*packed.Object)
		text, plain := o.JSON()
		if !plain || text != texts[key] {
			t.Fatalf("%s: got %q (uncompressed: %v), want %q", key, text, plain, texts[key])
		}
		size += int64(o.Size())
	}
	if now.Len() != objects || now.sizes.packed != size || now.sizes.compressed != 0 {
		t.Errorf("%d objects with the sizes %+v, want %d objects with %d packed bytes", now.Len(), now.sizes,
			objects, size)
	}
	for key, item := range before.All {
		if o := item.(*packed.Object); o.Key() != key {
			t.Fatalf("the earlier snapshot has the object %s under the key %s", o.Key(), key)
		}
	}
}
