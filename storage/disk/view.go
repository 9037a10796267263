package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Keys begin with what they are of, and the view's id: the checkpoint of a view, or one of its objects.
const (
	checkpointPrefix = "c"
	objectPrefix     = "o"
	idLength         = 16
)

// record is what is kept of a view beside its objects.
type record struct {
	View       string                     `json:"view"`
	Checkpoint dynamicinformer.Checkpoint `json:"checkpoint"`
}

// view is one view of a type in a Store.
type view struct {
	store *Store
	key   string
	id    string
	// epoch is the engine that is known to have what was loaded or saved last; zero: none is.
	epoch int
}

func (v *view) recordKey() []byte { return []byte(checkpointPrefix + v.id) }

// objects are the bounds of the objects' keys.
func objects(id string) (start, end []byte) {
	return []byte(objectPrefix + id), after(objectPrefix + id)
}

// after returns the first key after those of a prefix.
func after(prefix string) []byte {
	end := []byte(prefix)
	for k := len(end) - 1; k >= 0; k-- {
		if end[k]++; end[k] != 0 {
			return end[:k+1]
		}
	}
	return nil
}

// Checkpoint implements dynamicinformer.PersistedView.
func (v *view) Checkpoint() (at dynamicinformer.Checkpoint, ok bool, err error) {
	_, err = v.store.use(0, func(_ *engine, db *pebble.DB) error {
		text, closer, err := db.Get(v.recordKey())
		if errors.Is(err, pebble.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer closer.Close()
		var r record
		if err := json.Unmarshal(text, &r); err != nil || r.View != v.key {
			return fmt.Errorf("%w: the record of %q is %q: %w", errDamaged, v.key, text, err)
		}
		at, ok = r.Checkpoint, true
		return nil
	})
	return at, ok, err
}

// Load implements dynamicinformer.PersistedView.
func (v *view) Load(object func(json []byte) error) error {
	used, err := v.store.use(0, func(_ *engine, db *pebble.DB) error {
		start, end := objects(v.id)
		all, err := db.NewIter(&pebble.IterOptions{LowerBound: start, UpperBound: end})
		if err != nil {
			return err
		}
		for ok := all.First(); ok && err == nil; ok = all.Next() {
			var text []byte
			if text, err = all.ValueAndErr(); err == nil {
				err = object(text)
			}
		}
		return errors.Join(err, all.Close())
	})
	if err == nil {
		v.epoch = used
	}
	return err
}

// Save implements dynamicinformer.PersistedView.
func (v *view) Save(at dynamicinformer.Checkpoint, whole bool, write func(dynamicinformer.PersistenceWriter) error) error {
	text, err := json.Marshal(record{View: v.key, Checkpoint: at})
	if err != nil {
		return err
	}
	epoch := v.epoch
	if whole {
		epoch = 0
	} else if epoch == 0 {
		return errLost
	}
	v.epoch = 0
	used, err := v.store.use(epoch, func(e *engine, db *pebble.DB) error {
		if err := e.room(); err != nil {
			return err
		}
		if whole {
			return v.replace(e, db, text, write)
		}
		return v.change(db, text, write)
	})
	if err == nil {
		v.epoch = used
	}
	return err
}

// change writes changes, which take effect at once.
func (v *view) change(db *pebble.DB, text []byte, write func(dynamicinformer.PersistenceWriter) error) error {
	batch := db.NewBatch()
	defer batch.Close()
	if err := write(&changes{batch: batch, prefix: objectPrefix + v.id}); err != nil {
		return err
	}
	if err := batch.Set(v.recordKey(), text, nil); err != nil {
		return err
	}
	return batch.Commit(pebble.Sync)
}

// changes is a dynamicinformer.PersistenceWriter.
type changes struct {
	batch  *pebble.Batch
	prefix string
	key    []byte
}

func (c *changes) of(key string) []byte {
	c.key = append(append(c.key[:0], c.prefix...), key...)
	return c.key
}

// Put implements dynamicinformer.PersistenceWriter.
func (c *changes) Put(key string, json []byte) error { return c.batch.Set(c.of(key), json, nil) }

// Delete implements dynamicinformer.PersistenceWriter.
func (c *changes) Delete(key string) error { return c.batch.Delete(c.of(key), nil) }

// Close implements dynamicinformer.PersistedView.
func (v *view) Close() error {
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	delete(v.store.mu.claimed, v.key)
	return nil
}

// expire removes the views that were saved last before a time.
func expire(db *pebble.DB, before time.Time) error {
	all, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte(checkpointPrefix), UpperBound: after(checkpointPrefix)})
	if err != nil {
		return err
	}
	batch := db.NewBatch()
	defer batch.Close()
	for ok := all.First(); ok && err == nil; ok = all.Next() {
		var r record
		key := all.Key()
		if len(key) == len(checkpointPrefix)+idLength && json.Unmarshal(all.Value(), &r) == nil && !r.Checkpoint.Time.Before(before) {
			continue
		}
		start, end := objects(string(key[len(checkpointPrefix):]))
		err = errors.Join(batch.DeleteRange(start, end, nil), batch.Delete(key, nil))
	}
	if err = errors.Join(err, all.Close()); err != nil || batch.Empty() {
		return err
	}
	return batch.Commit(pebble.Sync)
}
