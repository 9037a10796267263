package snapshot

import (
	"iter"
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

	// recent are the latest results of Block, because the next read is probably of the same block.
	recent struct {
		sync.Mutex
		blocks [2]recentBlock
	}
	// sortedRecords returns all records of an Unsorted type, sorted by key. It reads them once.
	sortedRecords func() ([]Record, error)
}

type recentBlock struct {
	number  int
	records []Record
}

// Type returns the description of the type.
func (o *Objects) Type() SavedType { return o.entry.SavedType }

// Ordered reports whether the objects were written in the order of their keys, and each key once.
func (o *Objects) Ordered() bool { return !o.entry.Unsorted }

// Blocks returns the number of blocks.
func (o *Objects) Blocks() int { return len(o.entry.Blocks) }

// Block returns the records of a block in the order in which they were written. Each record keeps the
// memory of the whole block alive.
func (o *Objects) Block(i int) (records []Record, err error) {
	o.recent.Lock()
	defer o.recent.Unlock()
	for _, recent := range o.recent.blocks {
		if recent.number == i && recent.records != nil {
			return recent.records, nil
		}
	}
	_, objects, err := o.read(i, nil)
	if err != nil {
		return nil, err
	}
	size := 0
	for _, object := range objects {
		size += object.JSONSize()
	}
	text := make([]byte, 0, size)
	records = make([]Record, 0, len(objects))
	err = o.decode(i, objects, &text, func(r Record) bool {
		records = append(records, r)
		return true
	})
	if err != nil {
		return nil, err
	}
	o.recent.blocks = [...]recentBlock{{i, records}, o.recent.blocks[0]}
	return records, nil
}

// read reads a block, and compares its objects with the index. If bodies is set, it has the decompressed
// bodies until the next call; otherwise they stay compressed.
func (o *Objects) read(i int, bodies *[]byte) (stored block.StoredObjects, objects []*packed.Object,
	err error) {
	b := o.entry.Blocks[i]
	if o.loaded != nil {
		return stored, o.loaded[b.Offset:][:b.Objects], nil
	}
	record, err := o.file.readRecord(b.Offset, int(b.Stored))
	if err != nil {
		return stored, nil, err
	}
	stored, err = block.ReadObjects(record)
	openBodies := stored.Bodies
	if err == nil && bodies != nil {
		*bodies, err = stored.BodiesIn(*bodies)
		openBodies = func() ([]byte, error) { return *bodies, nil }
	}
	if err == nil {
		objects, err = packed.ReadBlock(stored.Head, openBodies, stored.StoredSize())
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

// decode calls yield with the records of a block, until it returns false. Their JSON is appended to text.
func (o *Objects) decode(i int, objects []*packed.Object, text *[]byte, yield func(Record) bool) (err error) {
	position := 0
	for _, earlierBlock := range o.entry.Blocks[:i] {
		position += earlierBlock.Objects
	}
	for k, object := range objects {
		start := len(*text)
		if *text, err = object.AppendJSON(*text); err != nil {
			return block.Damaged(o.entry.Blocks[i].Offset, "%v", err)
		}
		r := Record{Key: object.Key(), JSON: slices.Clip((*text)[start:]), Position: position + k,
			Version: object.GroupVersionKind().Version, Labels: object.Labels()}
		if !yield(r) {
			return nil
		}
	}
	return nil
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

// Count returns the number of objects with keys in [from, to); an empty to means no limit. If the objects are
// Ordered, it reads only the blocks at both ends of the range.
func (o *Objects) Count(from, to string) (n int, err error) {
	isIn := func(key string) bool { return key >= from && (to == "" || key < to) }
	for i, b := range o.entry.Blocks {
		switch {
		case o.Ordered() && (b.Last < from || to != "" && b.First >= to):
		case o.Ordered() && isIn(b.First) && isIn(b.Last):
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
func (o *Objects) All(yield func(Record, error) bool) { o.Range("", "")(yield) }

// Range works like All for the records with keys in [from, to); an empty to means no limit.
func (o *Objects) Range(from, to string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		ended := false
		var bodies, text []byte
		onRecord := func(r Record) bool {
			text = text[:0]
			ended = to != "" && r.Key >= to || r.Key >= from && !yield(r, nil)
			return !ended
		}
		if !o.Ordered() {
			records, err := o.sortedRecords()
			if err != nil {
				yield(Record{}, err)
			}
			for i := 0; i < len(records) && onRecord(records[i]); i++ {
			}
			return
		}
		first, contains := o.Find(from)
		if !contains { // the keys of the block are before from
			first++
		}
		for i := first; i < o.Blocks() && !ended && (to == "" || o.entry.Blocks[i].First < to); i++ {
			_, objects, err := o.read(i, &bodies)
			if err == nil {
				err = o.decode(i, objects, &text, onRecord)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
	}
}

// Get returns the first record with a key, and whether it exists.
func (o *Objects) Get(key string) (r Record, ok bool, err error) {
	for r, err := range o.Range(key, key+"\x00") {
		return r, err == nil, err
	}
	return Record{}, false, nil
}

// sortRecords returns all records, sorted by key.
func (o *Objects) sortRecords() (records []Record, err error) {
	for i := range o.entry.Blocks {
		blockRecords, err := o.Block(i)
		if err != nil {
			return nil, err
		}
		records = append(records, blockRecords...)
	}
	slices.SortStableFunc(records, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	return records, nil
}
