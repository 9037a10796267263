package snapshot

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/packed"
)

// Objects are the objects of one type in a file. It is safe for concurrent use.
type Objects struct {
	file  *File
	entry typeEntry
	// loaded are the objects of a folder, sorted by key.
	loaded []*packed.Object

	// sortedRecords has all records sorted by key, for a type with an Unsorted entry.
	sortedRecords struct {
		sync.Mutex
		records []Record
	}
}

// Type returns the description of the type.
func (o *Objects) Type() SavedType { return o.entry.SavedType }

// Ordered reports whether the objects were written in the order of their keys, and each key once.
func (o *Objects) Ordered() bool { return !o.entry.Unsorted }

// Blocks returns the number of blocks.
func (o *Objects) Blocks() int { return len(o.entry.Blocks) }

// Block returns the records of a block in the order in which they were written. Each record keeps the
// memory of the whole block alive.
func (o *Objects) Block(i int) ([]Record, error) {
	stored, objects, err := o.read(i)
	if err != nil {
		return nil, err
	}
	records, err := decode(stored, objects)
	if err != nil {
		return nil, block.Damaged(o.entry.Blocks[i].Offset, "%v", err)
	}
	position := 0
	for _, earlierBlock := range o.entry.Blocks[:i] {
		position += earlierBlock.Objects
	}
	for i := range records {
		records[i].Position = position + i
	}
	return records, nil
}

// read reads a block, and compares its objects with the index.
func (o *Objects) read(i int) (stored block.StoredObjects, objects []*packed.Object, err error) {
	b := o.entry.Blocks[i]
	if o.loaded != nil {
		return stored, o.loaded[b.Offset:][:b.Objects], nil
	}
	record, err := o.file.readRecord(b.Offset, int(b.Stored))
	if err != nil {
		return stored, nil, err
	}
	if stored, err = block.ReadObjects(record); err == nil {
		objects, err = packed.ReadBlock(stored.Head, stored.Bodies, stored.StoredSize())
	}
	if err != nil {
		return stored, nil, block.Damaged(b.Offset, "%v", err)
	}
	n := len(objects)
	if n == 0 || n != b.Objects || objects[0].Key() != b.First || objects[n-1].Key() != b.Last ||
		objects[0].Block().BodiesSize() != stored.BodiesSize() {
		return stored, nil, block.Damaged(b.Offset, "a block of %s does not have the objects that the index says",
			o.entry.Resource)
	}
	for i := 1; o.Ordered() && i < n; i++ {
		if objects[i].Key() <= objects[i-1].Key() {
			return stored, nil, block.Damaged(b.Offset, "the objects of a block of %s are not in order", o.entry.Resource)
		}
	}
	return stored, objects, nil
}

func decode(stored block.StoredObjects, objects []*packed.Object) (records []Record, err error) {
	size := 0
	for _, object := range objects {
		size += object.JSONSize()
	}
	cells, text := stored.Cells, make([]byte, 0, size)
	records = make([]Record, len(objects))
	for i, object := range objects {
		start := len(text)
		if text, err = object.AppendJSON(text); err != nil {
			return nil, err
		}
		records[i] = Record{Key: object.Key(), JSON: text[start:len(text):len(text)],
			Version: object.GroupVersionKind().Version, Labels: object.Labels()}
		if len(stored.Cells) == 0 {
			continue
		}
		length, n := binary.Uvarint(cells)
		if n <= 0 || length > uint64(len(cells)-n) {
			return nil, block.ErrDamaged
		}
		if cells = cells[n:]; length > 0 {
			records[i].Cells, cells = cells[:length:length], cells[length:]
		}
	}
	return records, nil
}

// Find returns the block that may contain a key. The objects must be Ordered.
func (o *Objects) Find(key string) (block int, ok bool) {
	i, found := slices.BinarySearchFunc(o.entry.Blocks, key,
		func(b blockInfo, key string) int { return strings.Compare(b.First, key) })
	if !found {
		i--
	}
	return i, i >= 0 && key <= o.entry.Blocks[i].Last
}

// Count returns the number of objects with keys in [from, to); an empty to means no limit. The objects must
// be Ordered. It reads only the blocks at both ends of the range.
func (o *Objects) Count(from, to string) (n int, err error) {
	isIn := func(key string) bool { return key >= from && (to == "" || key < to) }
	for i, b := range o.entry.Blocks {
		switch {
		case b.Last < from || to != "" && b.First >= to:
		case isIn(b.First) && isIn(b.Last):
			n += b.Objects
		default:
			records, err := o.Block(i)
			if err != nil {
				return 0, err
			}
			for _, r := range records {
				if isIn(r.Key) {
					n++
				}
			}
		}
	}
	return n, nil
}

// All yields all records sorted by key, until the first error. Records with equal keys keep their order. A
// record is valid until All yields the next one.
func (o *Objects) All(yield func(Record, error) bool) {
	if !o.Ordered() {
		records, err := o.loadSorted()
		if err != nil {
			yield(Record{}, err)
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
		return
	}
	for i := range o.entry.Blocks {
		records, err := o.Block(i)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Get returns the first record with a key, and whether it exists.
func (o *Objects) Get(key string) (r Record, ok bool, err error) {
	var records []Record
	if !o.Ordered() {
		records, err = o.loadSorted()
	} else if i, found := o.Find(key); found {
		records, err = o.Block(i)
	}
	if err != nil {
		return Record{}, false, err
	}
	i, ok := slices.BinarySearchFunc(records, key,
		func(r Record, key string) int { return strings.Compare(r.Key, key) })
	if !ok {
		return Record{}, false, nil
	}
	return records[i], true, nil
}

// loadSorted returns all records of an Unsorted type, sorted by key.
func (o *Objects) loadSorted() ([]Record, error) {
	o.sortedRecords.Lock()
	defer o.sortedRecords.Unlock()
	if o.sortedRecords.records != nil {
		return o.sortedRecords.records, nil
	}
	var sortedRecords []Record
	for i := range o.entry.Blocks {
		records, err := o.Block(i)
		if err != nil {
			return nil, err
		}
		sortedRecords = append(sortedRecords, records...)
	}
	slices.SortFunc(sortedRecords, func(a, b Record) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(a.Position, b.Position))
	})
	o.sortedRecords.records = sortedRecords
	return sortedRecords, nil
}
