package snapshot

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/packed"
)

// blockSize is the size of a block before compression. Larger blocks would hardly compress better, and
// reading one object decompresses a block.
const blockSize = 256 << 10

// maxBlockObjects limits the objects of a block, so that a small file cannot cause large allocations.
const maxBlockObjects = 8 << 10

// TypeWriter writes the objects of one type. It is not safe for concurrent use.
type TypeWriter struct {
	writer     *Writer
	entry      typeEntry
	apiVersion string
	block      packed.BlockWriter
	cells      []byte // the length and the cells of each object
	index      []byte
	first      string // key of the first object of the block
	last       []byte // key of the last object
	record     []byte
	err        error
}

// BeginType begins a type. The file contains it after TypeWriter.Close.
func (w *Writer) BeginType(t Type) *TypeWriter {
	return &TypeWriter{writer: w, apiVersion: t.GroupVersion().String(),
		entry: typeEntry{SavedType: SavedType{Type: t, Written: map[string]int{}}}}
}

// Add adds an object in JSON, with the cells of the server's table row or nil. It does not retain the
// arguments. Add adds a missing apiVersion and kind, as in lists of built-in types.
// Objects keep their order. Readers are faster if it is the order of the keys.
func (t *TypeWriter) Add(object, cells []byte) error {
	if t.err != nil {
		return t.err
	}
	o, err := pack(object, t.apiVersion, t.entry.Kind)
	if err == nil && len(object)+len(cells) > block.MaxContent/2 {
		err = fmt.Errorf("the object is too large: %d bytes", len(object))
	}
	if err == nil && t.block.Count() > 0 &&
		(t.block.Count() == maxBlockObjects || t.block.Size()+len(t.cells)+len(object) > blockSize) {
		if err := t.flush(); err != nil {
			return err
		}
	}
	added := false
	if err == nil {
		added, err = t.block.Add(o)
	}
	if err == nil && !added {
		err = errNoObject
	}
	if err != nil {
		return t.setError(fmt.Errorf("snapshot: add %s: object %d: %w", t.entry.Resource,
			t.entry.Objects+1, err))
	}
	t.cells = append(binary.AppendUvarint(t.cells, uint64(len(cells))), cells...)
	key := o.Key()
	if t.entry.Objects > 0 && key <= string(t.last) {
		t.entry.Unsorted = true
	}
	if t.last = append(t.last[:0], key...); t.block.Count() == 1 {
		t.first = strings.Clone(key)
	}
	t.entry.Written[o.GroupVersionKind().Version]++
	t.entry.Objects++
	t.entry.Bytes += int64(len(object))
	return nil
}

// addBlock adds a record of objects as it is.
func (t *TypeWriter) addBlock(record []byte, objects []*packed.Object) (err error) {
	if t.block.Count() > 0 {
		err = t.flush()
	}
	first, last := objects[0].Key(), objects[len(objects)-1].Key()
	info := blockInfo{Objects: len(objects), First: first, Last: strings.Clone(last)}
	if err == nil {
		info.Offset, info.Stored, err = t.writer.appendFrame(record)
	}
	if err != nil {
		return t.setError(err)
	}
	isSorted := slices.IsSortedFunc(objects,
		func(a, b *packed.Object) int { return cmp.Or(strings.Compare(a.Key(), b.Key()), 1) })
	t.entry.Unsorted = t.entry.Unsorted || !isSorted || t.entry.Objects > 0 && first <= string(t.last)
	info.First, t.last = strings.Clone(first), append(t.last[:0], last...)
	for _, o := range objects {
		t.entry.Written[o.GroupVersionKind().Version]++
	}
	t.entry.Objects += len(objects)
	t.entry.Bytes += int64(objects[0].Block().JSONSize())
	t.entry.Blocks, t.entry.Stored = append(t.entry.Blocks, info), t.entry.Stored+int64(info.Stored)
	return nil
}

func (t *TypeWriter) setError(err error) error {
	t.err = err
	return err
}

func (t *TypeWriter) flush() (err error) {
	info := blockInfo{Objects: t.block.Count(), First: t.first, Last: string(t.last)}
	compressor := t.writer.compressors.Get().(*block.Compressor)
	defer t.writer.compressors.Put(compressor)
	var parts block.Parts
	t.index, parts.Bodies = t.block.AppendBlock(t.index[:0])
	if parts.Head = t.index; len(t.cells) > t.block.Count() { // not only lengths
		parts.Cells = t.cells
	}
	if t.record, err = block.AppendObjects(t.record[:0], parts, true, compressor); err == nil {
		info.Offset, info.Stored, err = t.writer.appendFrame(t.record)
	}
	if err != nil {
		return t.setError(err)
	}
	t.entry.Blocks = append(t.entry.Blocks, info)
	t.entry.Stored += int64(info.Stored)
	t.block.Reset()
	t.cells = t.cells[:0]
	return nil
}

// SetColumns sets the columns of the table rows. A server sends them with the first row.
func (t *TypeWriter) SetColumns(columns []metav1.TableColumnDefinition) { t.entry.Columns = columns }

// Close adds the type to the file, with the resource version of its objects.
func (t *TypeWriter) Close(resourceVersion string) error {
	if t.err != nil {
		return t.err
	}
	if t.block.Count() > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if t.entry.Written[t.entry.Version] == t.entry.Objects {
		t.entry.Written = nil
	}
	t.entry.ResourceVersion = resourceVersion
	t.err = errTypeWriterClosed
	return t.writer.addEntry(t.entry)
}

var errTypeWriterClosed = errors.New("snapshot: the TypeWriter is closed")
