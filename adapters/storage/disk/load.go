package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

var errStoredInBlocks = errors.New("the persisted data is in blocks")

// Load implements persistence.StoredContent, for data of Save.
func (s *storedContent) Load(ctx context.Context, object func(json []byte) error) error {
	latest := map[string][]byte{}
	var order []string
	err := s.LoadBlocks(ctx, func(key string, json []byte) error {
		if _, isKnown := latest[key]; !isKnown {
			order = append(order, key)
		}
		latest[key] = slices.Clone(json)
		return nil
	}, func([]byte, func() ([]byte, error), int) error { return errStoredInBlocks })
	if err != nil {
		return err
	}
	for _, key := range order {
		if json := latest[key]; json != nil {
			if err := object(json); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *storedContent) LoadBlocks(ctx context.Context, changed func(key string, json []byte) error,
	block func(head []byte, bodies func() ([]byte, error), size int) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var usage diskUsage
	epochUsed, err := s.store.withEngine(0, func(_ *engine, db *pebble.DB) error {
		usage = diskUsage{}
		var headBuffer []byte // buffer for heads
		err := s.eachRecord(db, logPrefix, &usage, &usage.log, func(number, record []byte) error {
			usage.nextLogRecord = binary.BigEndian.Uint64(number) + 1
			return readChanges(record, changed)
		})
		if err != nil {
			return err
		}
		return s.eachRecord(db, blockPrefix, &usage, &usage.blocks, func(_, record []byte) error {
			head, bodies, err := readBlock(headBuffer, record)
			if err != nil {
				return err
			}
			headBuffer = head
			return block(head, func() ([]byte, error) { return decompress(bodies) }, len(bodies))
		})
	})
	if err == nil {
		s.epoch, s.usage = epochUsed, usage
	}
	return err
}

// eachRecord calls f for each record of the blocks or the log, with its number. It adds the sizes of the
// records to size.
func (s *storedContent) eachRecord(db *pebble.DB, prefix string, usage *diskUsage, size *int,
	f func(number, record []byte) error) (err error) {
	start, end := prefixRange(prefix, s.id)
	iter, err := db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, iter.Close()) }()
	for ok := iter.First(); ok; ok = iter.Next() {
		key := iter.Key()
		value, err := iter.ValueAndErr()
		if err != nil {
			return err
		}
		if len(key) != len(start)+8 {
			return errDamaged
		}
		*size += len(value)
		record, isCurrentKey, err := s.store.cipher.open(key, value)
		if err != nil {
			return err
		}
		usage.hasOldKey = usage.hasOldKey || !isCurrentKey
		if err := f(key[len(start):], record); err != nil {
			return err
		}
	}
	return nil
}
