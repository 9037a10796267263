package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// errBlocks is the error of Load for a view with blocks.
var errBlocks = errors.New("the persisted data is in blocks")

// Load implements persistence.View, for data of Save.
func (v *view) Load(ctx context.Context, object func(json []byte) error) error {
	last := map[string][]byte{}
	var order []string
	err := v.LoadBlocks(ctx, func(key string, json []byte) error {
		if _, known := last[key]; !known {
			order = append(order, key)
		}
		last[key] = slices.Clone(json)
		return nil
	}, func([]byte, func() ([]byte, error), int) error { return errBlocks })
	if err != nil {
		return err
	}
	for _, key := range order {
		if json := last[key]; json != nil {
			if err := object(json); err != nil {
				return err
			}
		}
	}
	return nil
}

// LoadBlocks implements persistence.BlockView.
func (v *view) LoadBlocks(ctx context.Context, changed func(key string, json []byte) error,
	block func(head []byte, bodies func() ([]byte, error), size int) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var kept extent
	used, err := v.store.use(0, func(_ *engine, db *pebble.DB) error {
		kept = extent{}
		var memory []byte // buffer for heads
		err := v.each(db, logPrefix, &kept, func(key, record []byte) error {
			kept.next = binary.BigEndian.Uint64(key) + 1
			return readChanges(record, changed)
		}, &kept.log)
		if err != nil {
			return err
		}
		return v.each(db, blockPrefix, &kept, func(_, record []byte) error {
			head, bodies, err := readBlock(memory, record)
			if err != nil {
				return err
			}
			memory = head
			return block(head, func() ([]byte, error) { return decompress(bodies) }, len(bodies))
		}, &kept.blocks)
	})
	if err == nil {
		v.epoch, v.extent = used, kept
	}
	return err
}

// each calls f for each record of a view's blocks or log, with its number. It adds the records' sizes to
// bytes.
func (v *view) each(db *pebble.DB, prefix string, kept *extent, f func(number, record []byte) error,
	bytes *int) error {
	start, end := bounds(prefix, v.id)
	all, err := db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
	if err != nil {
		return err
	}
	for ok := all.First(); ok && err == nil; ok = all.Next() {
		err = v.one(all, len(start), kept, f, bytes)
	}
	return errors.Join(err, all.Close())
}

func (v *view) one(at *pebble.Iterator, prefix int, kept *extent, f func(number, record []byte) error,
	bytes *int) error {
	value, err := at.ValueAndErr()
	if err != nil {
		return err
	}
	key := at.Key()
	if len(key) != prefix+8 {
		return errDamaged
	}
	*bytes += len(value)
	record, asNow, err := v.store.sealing.open(key, value)
	if err != nil {
		return err
	}
	kept.stale = kept.stale || !asNow
	return f(key[prefix:], record)
}
