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

// replaceContent writes the whole content as a table that pebble ingests. The content is written only once,
// is never completely in memory, and atomically replaces the previous content. replace returns its disk
// usage.
func (s *storedContent) replaceContent(e *engine, db *pebble.DB, checkpoint []byte,
	write func(persistence.BlockWriter) error) (usage diskUsage, err error) {
	path := e.fs.PathJoin(e.dir, "whole-"+hex.EncodeToString([]byte(s.id)))
	file, err := e.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return usage, err
	}
	defer func() { _ = e.fs.Remove(path) }() // left over after a failure
	t := &tableWriter{
		writer: sstable.NewWriter(objstorageprovider.NewFileWritable(file),
			e.pebbleOptions().MakeWriterOptions(0, db.TableFormat())),
		checkpoint: checkpoint, logWriter: logWriter{content: s},
	}
	t.setRecord = t.setLogRecord
	// All entries of an ingested table have one sequence number, so these deletions remove the previous
	// content, but no keys of this table.
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := prefixRange(prefix, s.id)
		err = errors.Join(err, t.writer.DeleteRange(start, end))
	}
	if err == nil {
		err = errors.Join(write(t), t.flush(), t.writeCheckpoint())
	}
	if err = errors.Join(err, t.writer.Close()); err != nil {
		return usage, err
	}
	hadData, err := s.hasData(db)
	if err != nil {
		return usage, err
	}
	if err := db.Ingest(context.Background(), []string{path}); err != nil {
		return usage, err
	}
	if hadData { // otherwise the previous content stays on the disk until many writes cause a compaction
		return t.usage, s.compact(db)
	}
	return t.usage, nil
}

func (s *storedContent) hasData(db *pebble.DB) (bool, error) {
	_, closer, err := db.Get(s.checkpointKey())
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

func (s *storedContent) compact(db *pebble.DB) error {
	var err error
	for _, prefix := range []string{blockPrefix, logPrefix} {
		start, end := prefixRange(prefix, s.id)
		err = errors.Join(err, db.Compact(context.Background(), start, end, false))
	}
	return err
}

// tableWriter is a persistence.BlockWriter that writes a table with sorted keys: blocks, the checkpoint, the
// log.
type tableWriter struct {
	logWriter
	writer     *sstable.Writer
	checkpoint []byte // nil after it was written
	blocks     uint64
	buffer     []byte
}

var errWriteOrder = errors.New("blocks must be written before single objects")

func (t *tableWriter) PutBlock(head, bodies []byte) error {
	if t.checkpoint == nil {
		return errWriteOrder
	}
	key := t.content.numberedKey(blockPrefix, t.blocks)
	t.buffer = appendBlock(t.buffer[:0], head, bodies)
	value := t.content.store.cipher.seal(key, t.buffer)
	t.blocks++
	t.usage.blocks += len(value)
	return t.writer.Set(key, value)
}

var errDelete = errors.New("a complete content cannot have deletions")

func (t *tableWriter) Delete(string) error { return errDelete }

func (t *tableWriter) setLogRecord(key, value []byte) error {
	if err := t.writeCheckpoint(); err != nil {
		return err
	}
	return t.writer.Set(key, value)
}

// writeCheckpoint writes the checkpoint, which is between the blocks and the log.
func (t *tableWriter) writeCheckpoint() error {
	if t.checkpoint == nil {
		return nil
	}
	checkpoint := t.checkpoint
	t.checkpoint = nil
	return t.writer.Set(t.content.checkpointKey(), checkpoint)
}
