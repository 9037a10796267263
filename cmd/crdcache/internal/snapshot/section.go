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

	objectJSON, content, frame []byte // buffers
}

// BeginType begins a type. The file contains it after TypeWriter.Close.
func (w *Writer) BeginType(t Type) *TypeWriter {
	kind, err := json.Marshal(t.Kind)
	return &TypeWriter{writer: w, entry: typeEntry{SavedType: SavedType{Type: t}},
		kindJSON: append(append([]byte(`"kind":`), kind...), ','), err: err}
}

// Add adds an object in JSON, with the cells of the server's table row or nil. It does not retain the
// arguments. The object needs a name. Add removes its apiVersion, and adds a missing kind, as in lists of
// built-in types. Objects keep their order. Readers are faster if it is the order of the keys.
func (t *TypeWriter) Add(object, cells []byte) error {
	if t.err != nil {
		return t.err
	}
	object = bytes.TrimSpace(object)
	id, err := parseIdentity(object)
	if err == nil && len(object)+len(cells) > maxContentSize/2 {
		err = fmt.Errorf("the object is too large: %d bytes", len(object))
	}
	if err != nil {
		return t.setError(fmt.Errorf("snapshot: add %s: object %d: %w", t.entry.Resource,
			t.entry.Objects+1, err))
	}
	key := id.key()
	t.objectJSON = append(t.objectJSON[:0], '{')
	if !id.hasKind {
		t.objectJSON = append(t.objectJSON, t.kindJSON...)
	}
	if id.apiVersionEnd > 0 {
		t.objectJSON = append(t.objectJSON, object[1:id.apiVersionStart]...)
		t.objectJSON = append(t.objectJSON, object[id.apiVersionEnd:]...)
	} else {
		t.objectJSON = append(t.objectJSON, object[1:]...)
	}
	if t.entry.Objects > 0 && key <= t.block.last {
		t.entry.Unsorted = true
	}
	if t.block.objects == maxBlockObjects ||
		t.block.objects > 0 && t.block.size()+len(t.objectJSON) > blockSize {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.block.addRecord(key, Record{JSON: t.objectJSON, Cells: cells})
	t.entry.Objects++
	t.entry.Bytes += int64(len(object))
	return nil
}

func (t *TypeWriter) setError(err error) error {
	t.err = err
	return err
}

func (t *TypeWriter) flush() error {
	t.content = t.block.appendTo(t.content[:0])
	t.frame = appendContent(t.frame[:0], kindObjects, t.content)
	offset, err := t.writer.appendFrame(t.frame)
	if err != nil {
		return t.setError(err)
	}
	t.entry.Blocks = append(t.entry.Blocks, blockInfo{
		Offset: offset, Stored: uint32(len(t.frame)), Raw: uint32(len(t.content)), Objects: t.block.objects,
		First: t.block.first, Last: t.block.last,
	})
	t.entry.Stored += int64(len(t.frame))
	t.block.reset()
	return nil
}

// SetColumns sets the columns of the table rows. A server sends them with the first row.
func (t *TypeWriter) SetColumns(columns []metav1.TableColumnDefinition) { t.entry.Columns = columns }

// Close adds the type to the file, with the resource version of its objects.
func (t *TypeWriter) Close(resourceVersion string) error {
	if t.err != nil {
		return t.err
	}
	if t.block.objects > 0 {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.entry.ResourceVersion = resourceVersion
	t.err = errTypeWriterClosed
	return t.writer.addEntry(t.entry)
}

var errTypeWriterClosed = errors.New("snapshot: the TypeWriter is closed")

// AddCache adds all objects of an informer as cached, without pruned fields, and closes the TypeWriter.
func (t *TypeWriter) AddCache(cached *dynamicinformer.Snapshot) error {
	keys := cached.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		text, _, err := cached.JSON(key)
		if err == nil {
			err = t.Add(text, nil)
		}
		if err != nil {
			return err
		}
	}
	return t.Close(cached.ResourceVersion())
}
