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
	blocks, log   int
	nextLogRecord uint64
	// hasOldKey: some records were written with an old key.
	hasOldKey bool
}

var _ persistence.BlockContent = (*storedContent)(nil)

func (s *storedContent) checkpointKey() []byte { return []byte(checkpointPrefix + s.id) }

func (s *storedContent) numberedKey(prefix string, number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(prefix+s.id), number)
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

// savedAtLength is the length of the time at the beginning of a checkpoint's value, in seconds. It is not
// encrypted, because expired contents are removed regardless of their key.
const savedAtLength = 8

func (s *storedContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	// Read found only if withEngine returns no error: after a failure of the disk, f may still be running.
	var result struct {
		checkpoint persistence.Checkpoint
		found      bool
	}
	_, err := s.store.withEngine(0, func(_ *engine, db *pebble.DB) error {
		value, closer, err := db.Get(s.checkpointKey())
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closer.Close()
		if len(value) < savedAtLength {
			return errDamaged
		}
		text, _, err := s.store.cipher.open(s.checkpointKey(), value[savedAtLength:])
		if err != nil {
			return err
		}
		var r checkpointRecord
		if err := json.Unmarshal(text, &r); err != nil || r.Key != s.key {
			return fmt.Errorf("%w: checkpoint of %q is %q: %w", errDamaged, s.key, text, err)
		}
		result.checkpoint, result.found = r.Checkpoint, true
		return nil
	})
	if err != nil {
		return persistence.Checkpoint{}, false, err
	}
	return result.checkpoint, result.found, nil
}

func (s *storedContent) encodeCheckpoint(at persistence.Checkpoint) ([]byte, error) {
	text, err := json.Marshal(checkpointRecord{Key: s.key, Checkpoint: at})
	if err != nil {
		return nil, err
	}
	value := binary.BigEndian.AppendUint64(nil, uint64(at.Time.Unix()))
	return append(value, s.store.cipher.seal(s.checkpointKey(), text)...), nil
}

// A log is full if it has more bytes than minLogLimit and than the blocks divided by maxLogRatioInverse.
const (
	minLogLimit        = 64 << 10
	maxLogRatioInverse = 4
)

func (s *storedContent) NeedsRewrite() bool {
	return s.usage.hasOldKey || s.usage.log > max(minLogLimit, s.usage.blocks/maxLogRatioInverse)
}

func (s *storedContent) Save(ctx context.Context, at persistence.Checkpoint, replaceAll bool,
	write func(persistence.Writer) error) error {
	return s.SaveBlocks(ctx, at, replaceAll, func(w persistence.BlockWriter) error { return write(w) })
}

func (s *storedContent) SaveBlocks(ctx context.Context, at persistence.Checkpoint, replaceAll bool,
	write func(persistence.BlockWriter) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	checkpoint, err := s.encodeCheckpoint(at)
	if err != nil {
		return err
	}
	epoch := s.epoch
	if replaceAll {
		epoch = 0
	} else if epoch == 0 {
		return errRemovedData
	}
	s.epoch = 0
	usage := s.usage // a copy, because f may still run after the disk has failed
	epochUsed, err := s.store.withEngine(epoch, func(e *engine, db *pebble.DB) (err error) {
		if err := e.checkFreeSpace(); err != nil {
			return err
		}
		if replaceAll {
			usage, err = s.replaceContent(e, db, checkpoint, write)
		} else {
			usage, err = s.appendToLog(db, usage, checkpoint, write)
		}
		return err
	})
	if err == nil {
		s.epoch, s.usage = epochUsed, usage
	}
	return err
}

// appendToLog atomically adds changes to the log, and returns the new extent.
func (s *storedContent) appendToLog(db *pebble.DB, usage diskUsage, checkpoint []byte,
	write func(persistence.BlockWriter) error) (diskUsage, error) {
	batch := db.NewBatch()
	defer batch.Close()
	w := &logWriter{content: s, usage: usage,
		setRecord: func(key, value []byte) error { return batch.Set(key, value, nil) }}
	if err := errors.Join(write(w), w.flush()); err != nil {
		return usage, err
	}
	if err := batch.Set(s.checkpointKey(), checkpoint, nil); err != nil {
		return usage, err
	}
	return w.usage, batch.Commit(pebble.Sync)
}

// logWriter is a persistence.BlockWriter that writes to the log.
type logWriter struct {
	content   *storedContent
	usage     diskUsage
	setRecord func(key, value []byte) error
	text      []byte
}

// logRecordSize is the size at which a log record is written.
const logRecordSize = 256 << 10

func (l *logWriter) Put(key string, json []byte) error { return l.addChange(key, json) }
func (l *logWriter) Delete(key string) error           { return l.addChange(key, nil) }

func (l *logWriter) addChange(key string, json []byte) error {
	if l.text = appendChange(l.text, key, json); len(l.text) < logRecordSize {
		return nil
	}
	return l.flush()
}

func (l *logWriter) flush() error {
	if len(l.text) == 0 {
		return nil
	}
	key := l.content.numberedKey(logPrefix, l.usage.nextLogRecord)
	value := l.content.store.cipher.seal(key, compress(l.text))
	l.usage.nextLogRecord++
	l.usage.log += len(value)
	l.text = l.text[:0]
	return l.setRecord(key, value)
}

var errBlock = errors.New("changes cannot be written as blocks")

func (l *logWriter) PutBlock([]byte, []byte) error { return errBlock }

func (s *storedContent) Close() error {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.mu.openKeys, s.key)
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
		if len(key) == len(checkpointPrefix)+idLength && len(value) >= savedAtLength &&
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
