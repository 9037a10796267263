package disk

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// replace writes a whole content as one table, which pebble takes over as it is: it is written once, never in
// memory as a whole, and takes the place of what was there at once. It returns what the view takes then.
func (v *view) replace(e *engine, db *pebble.DB, checkpoint []byte,
	write func(persistence.BlockWriter) error) (kept extent, err error) {
	path := e.fs.PathJoin(e.dir, "whole-"+hex.EncodeToString([]byte(v.id)))
	file, err := e.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return kept, err
	}
	defer func() { _ = e.fs.Remove(path) }() // what is left of it after a failure
	t := &table{
		writer: sstable.NewWriter(objstorageprovider.NewFileWritable(file),
			e.pebbleOptions().MakeWriterOptions(0, db.TableFormat())),
		checkpoint: checkpoint, changes: changes{view: v},
	}
	t.set = t.entry
	// nothing in the table itself is removed by this
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := bounds(prefix, v.id)
		err = errors.Join(err, t.writer.DeleteRange(start, end))
	}
	if err == nil {
		err = errors.Join(write(t), t.flush(), t.between())
	}
	if err = errors.Join(err, t.writer.Close()); err != nil {
		return kept, err
	}
	had, err := v.has(db)
	if err != nil {
		return kept, err
	}
	if err := db.Ingest(context.Background(), []string{path}); err != nil {
		return kept, err
	}
	if had { // or what was there would stay on the disk until somebody writes a lot
		return t.kept, v.compact(db)
	}
	return t.kept, nil
}

// has reports whether anything is kept of the view.
func (v *view) has(db *pebble.DB) (bool, error) {
	_, closer, err := db.Get(v.recordKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

// compact has pebble put in order what is kept of the view.
func (v *view) compact(db *pebble.DB) error {
	var err error
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := bounds(prefix, v.id)
		err = errors.Join(err, db.Compact(context.Background(), start, end, false))
	}
	return err
}

// table is a persistence.BlockWriter for a table, whose keys come in their order: blocks, the checkpoint, the
// log.
type table struct {
	changes
	writer     *sstable.Writer
	checkpoint []byte // nil: written
	blocks     uint64
	record     []byte // memory for reuse
}

var errOrder = errors.New("a block comes after what is in none")

// PutBlock implements persistence.BlockWriter.
func (t *table) PutBlock(head, bodies []byte) error {
	if t.checkpoint == nil {
		return errOrder
	}
	key := t.view.numbered(blockPrefix, t.blocks)
	t.record = appendBlock(t.record[:0], head, bodies)
	value := t.view.store.sealing.seal(key, t.record)
	t.blocks++
	t.kept.blocks += len(value)
	return t.writer.Set(key, value)
}

var errDelete = errors.New("a whole content has nothing to delete")

// Delete implements persistence.Writer.
func (t *table) Delete(string) error { return errDelete }

// entry writes a record of the log.
func (t *table) entry(key, value []byte) error {
	if err := t.between(); err != nil {
		return err
	}
	return t.writer.Set(key, value)
}

// between writes what is between the blocks and the log.
func (t *table) between() error {
	if t.checkpoint == nil {
		return nil
	}
	checkpoint := t.checkpoint
	t.checkpoint = nil
	return t.writer.Set(t.view.recordKey(), checkpoint)
}
