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

// replace writes the whole content as a table that pebble ingests. It is written only once, is never
// completely in memory, and atomically replaces the previous content. It returns the new extent.
func (v *view) replace(e *engine, db *pebble.DB, checkpoint []byte,
	write func(persistence.BlockWriter) error) (kept extent, err error) {
	path := e.fs.PathJoin(e.dir, "whole-"+hex.EncodeToString([]byte(v.id)))
	file, err := e.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return kept, err
	}
	defer func() { _ = e.fs.Remove(path) }() // a remainder after a failure
	t := &table{
		writer: sstable.NewWriter(objstorageprovider.NewFileWritable(file),
			e.pebbleOptions().MakeWriterOptions(0, db.TableFormat())),
		checkpoint: checkpoint, changes: changes{view: v},
	}
	t.set = t.setLogRecord
	// this does not remove keys of the same table.
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := bounds(prefix, v.id)
		err = errors.Join(err, t.writer.DeleteRange(start, end))
	}
	if err == nil {
		err = errors.Join(write(t), t.flush(), t.writeCheckpoint())
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
	if had { // otherwise the previous content stays on the disk until many writes cause a compaction
		return t.extent, v.compact(db)
	}
	return t.extent, nil
}

// has reports whether the view has data.
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

// compact compacts the view's keys.
func (v *view) compact(db *pebble.DB) error {
	var err error
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := bounds(prefix, v.id)
		err = errors.Join(err, db.Compact(context.Background(), start, end, false))
	}
	return err
}

// table is a persistence.BlockWriter that writes a table with sorted keys: blocks, the checkpoint, the log.
type table struct {
	changes
	writer     *sstable.Writer
	checkpoint []byte // nil after it was written
	blocks     uint64
	record     []byte // buffer
}

var errOrder = errors.New("blocks must be written before single objects")

// PutBlock implements persistence.BlockWriter.
func (t *table) PutBlock(head, bodies []byte) error {
	if t.checkpoint == nil {
		return errOrder
	}
	key := t.view.numbered(blockPrefix, t.blocks)
	t.record = appendBlock(t.record[:0], head, bodies)
	value := t.view.store.sealing.seal(key, t.record)
	t.blocks++
	t.extent.blocks += len(value)
	return t.writer.Set(key, value)
}

var errDelete = errors.New("a complete content cannot have deletions")

// Delete implements persistence.Writer.
func (t *table) Delete(string) error { return errDelete }

// setLogRecord writes a log record.
func (t *table) setLogRecord(key, value []byte) error {
	if err := t.writeCheckpoint(); err != nil {
		return err
	}
	return t.writer.Set(key, value)
}

// writeCheckpoint writes the checkpoint, which is between the blocks and the log.
func (t *table) writeCheckpoint() error {
	if t.checkpoint == nil {
		return nil
	}
	checkpoint := t.checkpoint
	t.checkpoint = nil
	return t.writer.Set(t.view.recordKey(), checkpoint)
}
