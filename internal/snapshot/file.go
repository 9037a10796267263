package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/naming"
)

// File is an open snapshot. It is safe for concurrent use.
type File struct {
	source   io.ReaderAt
	close    func() error
	contents Contents
	types    []*Objects
}

// Open opens a snapshot file, or a folder of persisted caches. The error wraps a
// *block.FormatError if the file is damaged, and block.ErrMagic if it is not a snapshot.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		_ = file.Close() // not used
		return openFolder(path)
	}
	if err == nil {
		var f *File
		if f, err = NewFile(file, info.Size()); err == nil {
			f.close = file.Close
			return f, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
}

// NewFile opens a snapshot with a size in bytes. source must not change while the File is used.
func NewFile(source io.ReaderAt, size int64) (*File, error) {
	f := &File{source: source, close: func() error { return nil }}
	indexOffset, indexLength, err := block.ReadTrailer(source, size)
	if err != nil {
		return nil, err
	}
	return f, f.readIndex(indexOffset, indexLength, size)
}

// Close closes the file if Open opened it.
func (f *File) Close() error { return f.close() }

// Contents returns the types, the origin and the time of the snapshot.
func (f *File) Contents() Contents { return f.contents }

// Objects returns the objects of a type, or nil if the file does not have the type.
func (f *File) Objects(gr schema.GroupResource) *Objects {
	o, _ := naming.Find(f.types, func(o *Objects) bool { return o.entry.GVR().GroupResource() == gr })
	return o
}

// Verify reads the whole file. It returns the first error.
func (f *File) Verify(ctx context.Context) error {
	for _, o := range f.types {
		for _, err := range o.All {
			if err := cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
		}
	}
	return nil
}

// readRecord returns the record of the frame at an offset.
func (f *File) readRecord(offset int64, length int) ([]byte, error) {
	frame := make([]byte, length)
	if err := block.ReadAt(f.source, frame, offset); err != nil {
		return nil, err
	}
	record, _, err := header.ParseFrame(frame, offset, nil)
	return record, err
}

func (f *File) readIndex(offset int64, length int, size int64) error {
	record, err := f.readRecord(offset, length)
	if err != nil {
		return err
	}
	text, err := block.ReadText(block.Index, record)
	if err != nil {
		return block.Damaged(offset, "%v", err)
	}
	if cost := indexMemory(text); cost > uint64(length)*maxMemoryPerByte+indexBase {
		return block.Damaged(offset, "the index of %d bytes would need %d bytes of memory", length, cost)
	}
	var decoded fileIndex
	if err := json.Unmarshal(text, &decoded); err != nil {
		return block.Damaged(offset, "decode the index: %v", err)
	}
	if len(decoded.Requires) > 0 {
		return &block.FormatError{Offset: offset, Problem: fmt.Sprintf("the file requires %s: use a newer version of this program",
			strings.Join(decoded.Requires, ", "))}
	}
	f.contents = Contents{Origin: decoded.Origin, Size: size}
	var blocks []blockInfo
	for _, e := range decoded.Types {
		if problem := e.problem(); problem != "" {
			return block.Damaged(offset, "%s", problem)
		}
		blocks = append(blocks, e.Blocks...)
		f.contents.Types = append(f.contents.Types, e.SavedType)
		o := &Objects{file: f, entry: e}
		o.sortedRecords = sync.OnceValues(o.sortRecords)
		f.types = append(f.types, o)
	}
	return checkOffsets(blocks, offset)
}

// problem returns why the entry is invalid, or "".
func (e typeEntry) problem() string {
	objects := 0
	for i, b := range e.Blocks {
		if b.Objects <= 0 || b.Objects > maxBlockObjects {
			return fmt.Sprintf("invalid block of %d objects in the index", b.Objects)
		}
		if i > 0 && !e.Unsorted && b.First <= e.Blocks[i-1].Last {
			return fmt.Sprintf("the blocks of %s are not in order", e.Resource)
		}
		objects += b.Objects
	}
	switch {
	case e.Resource == "" || e.Version == "" || e.Kind == "":
		return "a type in the index lacks a name, version or kind"
	case objects != e.Objects:
		return fmt.Sprintf("%s has %d objects in the index and %d in its blocks", e.Resource, e.Objects, objects)
	case e.Missing != nil && objects > 0:
		return e.Resource + " is marked as missing, but has objects"
	}
	return ""
}

// checkOffsets returns an error if blocks overlap each other or the index. Overlaps would let a small file
// contain much content.
func checkOffsets(blocks []blockInfo, end int64) error {
	slices.SortFunc(blocks, func(a, b blockInfo) int { return cmp.Compare(a.Offset, b.Offset) })
	minOffset := int64(block.HeaderSize)
	for _, b := range blocks {
		if b.Offset < minOffset || b.Offset > end-int64(b.Stored) || b.Stored == 0 {
			return block.Damaged(end, "the index has a block at the invalid position %d", b.Offset)
		}
		minOffset = b.Offset + int64(b.Stored)
	}
	return nil
}
