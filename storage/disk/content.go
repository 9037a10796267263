package disk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// Keys consist of a prefix and the content's id. Prefixes: blocks of objects, the checkpoint of a stored
// content, and the log of changes since the blocks were written. A number follows in keys of blocks and log
// records.
const (
	blockPrefix      = "b"
	checkpointPrefix = "c"
	logPrefix        = "l"
	idLength         = 16
)

type checkpointRecord struct {
	Key        string                 `json:"view"`
	Checkpoint persistence.Checkpoint `json:"checkpoint"`
}

type storedContent struct {
	store *Store
	key   string
	id    string
	// epoch is the number of the engine with the data that was loaded or saved last, or zero.
	epoch int
	usage diskUsage
}

type diskUsage struct {
	// blocks and log are sizes in bytes; next is the number of the next log record.
	blocks, log int
	next        uint64
	// hasOldKey: some records were written with an old key.
	hasOldKey bool
}

var _ persistence.BlockContent = (*storedContent)(nil)

func (v *storedContent) checkpointKey() []byte { return []byte(checkpointPrefix + v.id) }

func (v *storedContent) numberedKey(prefix string, number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(prefix+v.id), number)
}

// prefixRange returns the key range of a stored content's blocks or log.
func prefixRange(prefix, id string) (start, end []byte) {
	return []byte(prefix + id), prefixEnd(prefix + id)
}

// prefixEnd returns the first key after all keys with a prefix.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	for k := len(end) - 1; k >= 0; k-- {
		if end[k]++; end[k] != 0 {
			return end[:k+1]
		}
	}
	return nil
}

// stampLength is the length of the time at the beginning of a checkpoint's value, in seconds. It is not
// encrypted, because expired contents are removed regardless of their key.
const stampLength = 8

func (v *storedContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	// Read found only if withEngine returns no error: after a failure of the disk, f may still be running.
	var found struct {
		at persistence.Checkpoint
		ok bool
	}
	_, err := v.store.withEngine(0, func(_ *engine, db *pebble.DB) error {
		value, closer, err := db.Get(v.checkpointKey())
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closer.Close()
		if len(value) < stampLength {
			return errDamaged
		}
		text, _, err := v.store.cipher.open(v.checkpointKey(), value[stampLength:])
		if err != nil {
			return err
		}
		var r checkpointRecord
		if err := json.Unmarshal(text, &r); err != nil || r.Key != v.key {
			return fmt.Errorf("%w: checkpoint of %q is %q: %w", errDamaged, v.key, text, err)
		}
		found.at, found.ok = r.Checkpoint, true
		return nil
	})
	if err != nil {
		return persistence.Checkpoint{}, false, err
	}
	return found.at, found.ok, nil
}

func (v *storedContent) checkpoint(at persistence.Checkpoint) ([]byte, error) {
	text, err := json.Marshal(checkpointRecord{Key: v.key, Checkpoint: at})
	if err != nil {
		return nil, err
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(at.Time.Unix()))
	return append(value, v.store.cipher.seal(v.checkpointKey(), text)...), nil
}

// minFullLog is the size below which a log is never full, logShare the inverse of the maximum ratio of log
// and blocks.
const (
	minFullLog = 64 << 10
	logShare   = 4
)

func (v *storedContent) NeedsRewrite() bool {
	return v.usage.hasOldKey || v.usage.log > max(minFullLog, v.usage.blocks/logShare)
}

func (v *storedContent) Save(ctx context.Context, at persistence.Checkpoint, replaceAll bool,
	write func(persistence.Writer) error) error {
	return v.SaveBlocks(ctx, at, replaceAll, func(w persistence.BlockWriter) error { return write(w) })
}

func (v *storedContent) SaveBlocks(ctx context.Context, at persistence.Checkpoint, replaceAll bool,
	write func(persistence.BlockWriter) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	checkpoint, err := v.checkpoint(at)
	if err != nil {
		return err
	}
	epoch := v.epoch
	if replaceAll {
		epoch = 0
	} else if epoch == 0 {
		return errRemovedData
	}
	v.epoch = 0
	usage := v.usage // a copy, because f may still run after the disk has failed
	used, err := v.store.withEngine(epoch, func(e *engine, db *pebble.DB) (err error) {
		if err := e.checkFreeSpace(); err != nil {
			return err
		}
		if replaceAll {
			usage, err = v.replace(e, db, checkpoint, write)
		} else {
			usage, err = v.change(db, usage, checkpoint, write)
		}
		return err
	})
	if err == nil {
		v.epoch, v.usage = used, usage
	}
	return err
}

// change atomically adds changes to the log, and returns the new extent.
func (v *storedContent) change(db *pebble.DB, usage diskUsage, checkpoint []byte,
	write func(persistence.BlockWriter) error) (diskUsage, error) {
	batch := db.NewBatch()
	defer batch.Close()
	w := &logWriter{content: v, usage: usage,
		set: func(key, value []byte) error { return batch.Set(key, value, nil) }}
	if err := errors.Join(write(w), w.flush()); err != nil {
		return usage, err
	}
	if err := batch.Set(v.checkpointKey(), checkpoint, nil); err != nil {
		return usage, err
	}
	return w.usage, batch.Commit(pebble.Sync)
}

// logWriter is a persistence.BlockWriter that writes to the log.
type logWriter struct {
	content *storedContent
	usage   diskUsage
	set     func(key, value []byte) error
	text    []byte
}

// logRecord is the size at which a log record is written.
const logRecord = 256 << 10

func (c *logWriter) Put(key string, json []byte) error { return c.add(key, json) }
func (c *logWriter) Delete(key string) error           { return c.add(key, nil) }

func (c *logWriter) add(key string, json []byte) error {
	if c.text = appendChange(c.text, key, json); len(c.text) < logRecord {
		return nil
	}
	return c.flush()
}

func (c *logWriter) flush() error {
	if len(c.text) == 0 {
		return nil
	}
	key := c.content.numberedKey(logPrefix, c.usage.next)
	value := c.content.store.cipher.seal(key, compress(c.text))
	c.usage.next++
	c.usage.log += len(value)
	c.text = c.text[:0]
	return c.set(key, value)
}

var errBlock = errors.New("changes cannot be written as blocks")

func (c *logWriter) PutBlock([]byte, []byte) error { return errBlock }

func (v *storedContent) Close() error {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	delete(v.store.mu.openKeys, v.key)
	return nil
}

// removeExpired removes the contents saved last before a time.
func removeExpired(db *pebble.DB, before time.Time) error {
	iter, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte(checkpointPrefix),
		UpperBound: prefixEnd(checkpointPrefix)})
	if err != nil {
		return err
	}
	batch := db.NewBatch()
	defer batch.Close()
	for ok := iter.First(); ok && err == nil; ok = iter.Next() {
		key, value := iter.Key(), iter.Value()
		if len(key) == len(checkpointPrefix)+idLength && len(value) >= stampLength &&
			int64(binary.BigEndian.Uint64(value)) >= before.Unix() {
			continue
		}
		for _, prefix := range []string{blockPrefix, logPrefix} {
			start, end := prefixRange(prefix, string(key[len(checkpointPrefix):]))
			err = errors.Join(err, batch.DeleteRange(start, end, nil))
		}
		err = errors.Join(err, batch.Delete(key, nil))
	}
	if err = errors.Join(err, iter.Close()); err != nil || batch.Empty() {
		return err
	}
	return batch.Commit(pebble.Sync)
}
