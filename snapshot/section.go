package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TypeWriter writes the objects of one type. It is not safe for concurrent use.
type TypeWriter struct {
	writer   *Writer
	entry    typeEntry
	block    blockBuilder
	kindJSON []byte // the JSON member with a comma
	err      error

	text, content, frame []byte // buffers
}

// BeginType begins a type. The file contains it after TypeWriter.Close.
func (w *Writer) BeginType(t Type) *TypeWriter {
	kind, err := json.Marshal(t.Kind)
	return &TypeWriter{writer: w, entry: typeEntry{SavedType: SavedType{Type: t}},
		kindJSON: append(append([]byte(`"kind":`), kind...), ','), err: err}
}

// Add adds an object in JSON, with the cells of the server's table row or nil. It does not retain the
// arguments. The object needs a name. Its apiVersion is removed, and a missing kind is added, as in lists
// of built-in types. Objects keep their order; files sorted by key are read faster.
func (s *TypeWriter) Add(object, cells []byte) error {
	if s.err != nil {
		return s.err
	}
	object = bytes.TrimSpace(object)
	id, err := parseIdentity(object)
	if err == nil && len(object)+len(cells) > maxContentSize/2 {
		err = fmt.Errorf("the object is too large: %d bytes", len(object))
	}
	if err != nil {
		return s.setErr(fmt.Errorf("snapshot: add %s: object %d: %w", s.entry.Resource,
			s.entry.Objects+1, err))
	}
	key := id.key()
	s.text = append(s.text[:0], '{')
	if !id.kind {
		s.text = append(s.text, s.kindJSON...)
	}
	if id.end > 0 {
		s.text = append(append(s.text, object[1:id.begin]...), object[id.end:]...)
	} else {
		s.text = append(s.text, object[1:]...)
	}
	if s.entry.Objects > 0 && key <= s.block.last {
		s.entry.Unsorted = true
	}
	if s.block.objects == maxBlockObjects || s.block.objects > 0 && s.block.size()+len(s.text) > blockSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.block.add(key, Record{JSON: s.text, Cells: cells})
	s.entry.Objects++
	s.entry.Bytes += int64(len(object))
	return nil
}

func (s *TypeWriter) setErr(err error) error {
	s.err = err
	return err
}

func (s *TypeWriter) flush() error {
	s.content = s.block.appendTo(s.content[:0])
	s.frame = appendContent(s.frame[:0], kindObjects, s.content)
	at, err := s.writer.append(s.frame)
	if err != nil {
		return s.setErr(err)
	}
	s.entry.Blocks = append(s.entry.Blocks, blockInfo{
		Offset: at, Stored: uint32(len(s.frame)), Raw: uint32(len(s.content)), Objects: s.block.objects,
		First: s.block.first, Last: s.block.last,
	})
	s.entry.Stored += int64(len(s.frame))
	s.block.reset()
	return nil
}

// SetColumns sets the columns of the table rows. A server sends them with the first row.
func (s *TypeWriter) SetColumns(columns []metav1.TableColumnDefinition) { s.entry.Columns = columns }

// Close adds the type to the file, with the resource version of its objects.
func (s *TypeWriter) Close(resourceVersion string) error {
	if s.err != nil {
		return s.err
	}
	if s.block.objects > 0 {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.entry.ResourceVersion = resourceVersion
	s.err = errSectionClosed
	return s.writer.addEntry(s.entry)
}

var errSectionClosed = errors.New("snapshot: the section is closed")

// AddCache adds all objects of an informer as they are cached, without pruned fields, and closes the
// section.
func (s *TypeWriter) AddCache(cached *dynamicinformer.Snapshot) error {
	keys := cached.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		text, _, err := cached.JSON(key)
		if err == nil {
			err = s.Add(text, nil)
		}
		if err != nil {
			return err
		}
	}
	return s.Close(cached.ResourceVersion())
}
