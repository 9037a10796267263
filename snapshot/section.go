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

// Section writes the objects of one type. One goroutine fills it.
type Section struct {
	writer *Writer
	entry  entry
	block  builder
	kind   []byte // the member, with a comma
	err    error

	text, content, frame []byte // are used again
}

// Begin begins a type. It is no part of the file before Close.
func (w *Writer) Begin(t Type) *Section {
	kind, err := json.Marshal(t.Kind)
	return &Section{writer: w, entry: entry{Saved: Saved{Type: t}},
		kind: append(append([]byte(`"kind":`), kind...), ','), err: err}
}

// Add adds an object in JSON, which is not kept, with the row of the server's table if there is one. The
// object needs a name; its apiVersion is left out, and a kind is added where there is none, as in lists of
// built-in types. The order in which objects come is kept; that of their keys is the cheapest to read.
func (s *Section) Add(object, cells []byte) error {
	if s.err != nil {
		return s.err
	}
	object = bytes.TrimSpace(object)
	id, err := identify(object)
	if err == nil && len(object)+len(cells) > maxRaw/2 {
		err = fmt.Errorf("an object of %d bytes is too large", len(object))
	}
	if err != nil {
		return s.fail(fmt.Errorf("snapshot: adding %s: object %d: %w", s.entry.Resource,
			s.entry.Objects+1, err))
	}
	key := id.key()
	s.text = append(s.text[:0], '{')
	if !id.kind {
		s.text = append(s.text, s.kind...)
	}
	if id.end > 0 {
		s.text = append(append(s.text, object[1:id.begin]...), object[id.end:]...)
	} else {
		s.text = append(s.text, object[1:]...)
	}
	if s.entry.Objects > 0 && key <= s.block.last {
		s.entry.Unsorted = true
	}
	if s.block.objects == maxObjects || s.block.objects > 0 && s.block.size()+len(s.text) > blockSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.block.add(key, Record{JSON: s.text, Cells: cells})
	s.entry.Objects++
	s.entry.Bytes += int64(len(object))
	return nil
}

func (s *Section) fail(err error) error {
	s.err = err
	return err
}

// flush writes the block.
func (s *Section) flush() error {
	s.content = s.block.appendTo(s.content[:0])
	s.frame = appendContent(s.frame[:0], kindObjects, s.content)
	at, err := s.writer.append(s.frame)
	if err != nil {
		return s.fail(err)
	}
	s.entry.Blocks = append(s.entry.Blocks, place{
		At: at, Stored: uint32(len(s.frame)), Raw: uint32(len(s.content)), Objects: s.block.objects,
		First: s.block.first, Last: s.block.last,
	})
	s.entry.Stored += int64(len(s.frame))
	s.block.reset()
	return nil
}

// SetColumns says what the columns of the rows are, which a server tells with the first of them.
func (s *Section) SetColumns(columns []metav1.TableColumnDefinition) { s.entry.Columns = columns }

// Close makes the type part of the file, with its objects as they were at a resource version.
func (s *Section) Close(resourceVersion string) error {
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
	return s.writer.finish(s.entry)
}

var errSectionClosed = errors.New("snapshot: the section is closed")

// AddCache adds what an informer has cached, as it has it: without what its options leave out, and closes the
// section.
func (s *Section) AddCache(cached *dynamicinformer.Snapshot) error {
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
