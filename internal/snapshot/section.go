package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

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
	index      []byte
	// first is the first object of the block, and last the last one of the type.
	first, last *packed.Object
	record      []byte
	err         error
}

// BeginType begins a type. The file contains it after TypeWriter.Close.
func (w *Writer) BeginType(t Type) *TypeWriter {
	return &TypeWriter{writer: w, apiVersion: t.GVR().GroupVersion().String(),
		entry: typeEntry{SavedType: SavedType{Type: t}}}
}

// Add adds an object in JSON, which it does not retain. It adds a missing apiVersion and kind, as in lists of
// built-in types. Objects keep their order. Readers are faster if it is the order of the keys.
func (t *TypeWriter) Add(object []byte) error {
	if t.err == nil {
		if t.err = t.add(object); t.err != nil {
			t.err = fmt.Errorf("snapshot: add %s: object %d: %w", t.entry.Resource, t.entry.Objects+1, t.err)
		}
	}
	return t.err
}

func (t *TypeWriter) add(object []byte) error {
	o, err := pack(object, t.apiVersion, t.entry.Kind)
	if err != nil {
		return err
	}
	if len(object) > block.MaxContent/2 {
		return fmt.Errorf("the object is too large: %d bytes", len(object))
	}
	if t.block.Count() == maxBlockObjects || t.block.Size()+len(object) > blockSize {
		if err := t.flush(); err != nil {
			return err
		}
	}
	if added, err := t.block.Add(o); err != nil || !added {
		return cmp.Or(err, errNoObject)
	}
	t.entry.Unsorted = t.entry.Unsorted || t.last != nil && o.Key() <= t.last.Key()
	if t.last = o; t.block.Count() == 1 {
		t.first = o
	}
	t.entry.count(o)
	t.entry.Bytes += int64(len(object))
	return nil
}

// flush writes the block, unless it is empty.
func (t *TypeWriter) flush() (err error) {
	if t.block.Count() == 0 {
		return nil
	}
	info := blockInfo{Objects: t.block.Count(), First: strings.Clone(t.first.Key()),
		Last: strings.Clone(t.last.Key())}
	compressor := t.writer.compressors.Get().(*block.Compressor)
	defer t.writer.compressors.Put(compressor)
	var parts block.Parts
	t.index, parts.Bodies = t.block.AppendBlock(t.index[:0])
	parts.Head = t.index
	if t.record, err = block.AppendObjects(t.record[:0], parts, true, compressor); err == nil {
		info.Offset, info.Stored, err = t.writer.appendFrame(t.record)
	}
	t.entry.Blocks = append(t.entry.Blocks, info)
	t.entry.Stored += int64(info.Stored)
	t.block.Reset()
	return err
}

// Close adds the type to the file, with the resource version of its objects.
func (t *TypeWriter) Close(resourceVersion string) error {
	if err := cmp.Or(t.err, t.flush()); err != nil {
		return err
	}
	t.entry.finish()
	t.entry.ResourceVersion = resourceVersion
	t.err = errTypeWriterClosed
	return t.writer.addEntry(t.entry)
}

var errTypeWriterClosed = errors.New("snapshot: the TypeWriter is closed")
