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

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// File is a snapshot that is read. It is safe for concurrent use.
type File struct {
	from     io.ReaderAt
	close    func() error
	contents Contents
	types    []*Objects
}

// Open opens the file at a path. The error is a *FormatError, with the path before it, for a file that cannot
// be read, and wraps ErrNoSnapshot for one that is something else.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var f *File
		if f, err = NewFile(file, info.Size()); err == nil {
			f.close = file.Close
			return f, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
}

// NewFile reads a snapshot of a size. It must stay as it is while the File is used.
func NewFile(from io.ReaderAt, size int64) (*File, error) {
	f := &File{from: from, close: func() error { return nil }}
	head := make([]byte, min(size, int64(headerSize)))
	if err := f.read(head, 0); err != nil {
		return nil, err
	}
	if err := checkHeader(head); err != nil {
		return nil, err
	}
	if size < int64(headerSize+trailerSize) {
		return nil, damaged(size, "the file has no end: it was cut, or saving it was interrupted")
	}
	tail := make([]byte, trailerSize)
	if err := f.read(tail, size-int64(trailerSize)); err != nil {
		return nil, err
	}
	at, length, err := parseTrailer(tail, size)
	if err != nil {
		return nil, err
	}
	return f, f.readIndex(at, length, size)
}

// Close closes what Open opened.
func (f *File) Close() error { return f.close() }

// Contents is what the file says it has.
func (f *File) Contents() Contents { return f.contents }

// Objects returns the objects of a type; nil for one that is not in the file.
func (f *File) Objects(of schema.GroupResource) *Objects {
	i := slices.IndexFunc(f.types, func(o *Objects) bool { return o.entry.GVR().GroupResource() == of })
	if i < 0 {
		return nil
	}
	return f.types[i]
}

// Verify reads all of the file, and returns the first damage.
func (f *File) Verify(ctx context.Context) error {
	for _, o := range f.types {
		for _, err := range o.All {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *File) read(into []byte, at int64) error {
	if _, err := f.from.ReadAt(into, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading at byte %d: %w", at, err)
	} else if err != nil {
		return damaged(at, "the file ends early")
	}
	return nil
}

// content reads the content of a frame.
func (f *File) content(kind byte, at int64, length int) ([]byte, error) {
	text := make([]byte, length)
	if err := f.read(text, at); err != nil {
		return nil, err
	}
	return plainContent(text, kind, at)
}

// readIndex reads the index.
func (f *File) readIndex(at int64, length int, size int64) error {
	text, err := f.content(kindIndex, at, length)
	if err != nil {
		return err
	}
	if cost := contentCost(kindIndex, text); cost > allowedCost(kindIndex, length-frameSize) {
		return damaged(at, "the index has %d bytes in the file, and would take %d in memory", length, cost)
	}
	var read index
	if err := json.Unmarshal(text, &read); err != nil {
		return damaged(at, "the index is not understood: %v", err)
	}
	if len(read.Requires) > 0 {
		return &FormatError{at,
			fmt.Sprintf("it takes %s to read the file, which this program does not know: use a newer one",
				strings.Join(read.Requires, ", "))}
	}
	f.contents = Contents{About: read.About, Size: size}
	var blocks []place
	for _, e := range read.Types {
		if err := e.check(at); err != nil {
			return err
		}
		blocks = append(blocks, e.Blocks...)
		f.contents.Types = append(f.contents.Types, e.Saved)
		f.types = append(f.types, &Objects{file: f, entry: e})
	}
	return checkPlaces(blocks, at)
}

// check refuses an entry that contradicts itself.
func (e entry) check(at int64) error {
	objects := 0
	for _, b := range e.Blocks {
		if b.Objects <= 0 || b.Objects > maxObjects {
			return damaged(at, "the index has a block of %d objects", b.Objects)
		}
		objects += b.Objects
	}
	switch {
	case e.Resource == "" || e.Version == "" || e.Kind == "":
		return damaged(at, "the index has a type without a name, version or kind")
	case objects != e.Objects:
		return damaged(at, "%s has %d objects by the index, and %d in its blocks", e.Resource,
			e.Objects, objects)
	case e.Missing != nil && objects > 0:
		return damaged(at, "%s is missing, and has objects", e.Resource)
	}
	return nil
}

// checkPlaces refuses blocks that are not in the file before the index, or share bytes: then the file would
// have more content than its size justifies.
func checkPlaces(blocks []place, end int64) error {
	slices.SortFunc(blocks, func(a, b place) int { return cmp.Compare(a.At, b.At) })
	from := int64(headerSize)
	for _, b := range blocks {
		if b.At < from || b.At > end-int64(b.Stored) || b.Stored < frameSize {
			return damaged(end, "the index has a block at byte %d, where none can be", b.At)
		}
		from = b.At + int64(b.Stored)
	}
	return nil
}
