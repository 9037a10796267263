package disk

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// replace writes a whole content as one table, which pebble takes over as it is: it is written once, never in memory as a
// whole, and takes the place of what was there at once.
func (v *view) replace(e *engine, db *pebble.DB, text []byte, write func(dynamicinformer.PersistenceWriter) error) error {
	path := e.fs.PathJoin(e.dir, "whole-"+hex.EncodeToString([]byte(v.id)))
	file, err := e.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { _ = e.fs.Remove(path) }() // what is left of it after a failure
	table := &table{
		writer: sstable.NewWriter(objstorageprovider.NewFileWritable(file), e.pebbleOptions().MakeWriterOptions(0, db.TableFormat())),
		prefix: objectPrefix + v.id,
	}
	start, end := objects(v.id)
	// Nothing in the table itself is removed by this.
	err = errors.Join(table.writer.DeleteRange(start, end), table.writer.Set(v.recordKey(), text))
	if err == nil {
		err = write(table)
	}
	if err = errors.Join(err, table.writer.Close()); err != nil {
		return err
	}
	had, err := has(db, start, end)
	if err != nil {
		return err
	}
	if err := db.Ingest(context.Background(), []string{path}); err != nil {
		return err
	}
	if had { // or what was there would stay on the disk until somebody writes a lot
		return compact(db, start, end)
	}
	return nil
}

// has reports whether there is any key in a range.
func has(db *pebble.DB, start, end []byte) (bool, error) {
	all, err := db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return false, err
	}
	any := all.First()
	return any, errors.Join(all.Error(), all.Close())
}

// table is a dynamicinformer.PersistenceWriter.
type table struct {
	writer *sstable.Writer
	prefix string
	key    []byte
}

// Put implements dynamicinformer.PersistenceWriter.
func (t *table) Put(key string, json []byte) error {
	t.key = append(append(t.key[:0], t.prefix...), key...)
	return t.writer.Set(t.key, json)
}

var errDelete = errors.New("a whole content has nothing to delete")

// Delete implements dynamicinformer.PersistenceWriter.
func (t *table) Delete(string) error { return errDelete }
