package dynamicinformer

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/packed"
)

type memoryBackend struct {
	mu       sync.Mutex
	contents map[persistence.View]*storedContent
	// failure is the error that Save returns, if any. saves counts the successful calls.
	failure error
	saves   int
}

type storedContent struct {
	backend    *memoryBackend
	checkpoint persistence.Checkpoint
	records    [][2][]byte // head and bodies
	changes    int         // records after the last whole content
	claimed    bool
}

func newMemoryBackend() *memoryBackend {
	return &memoryBackend{contents: map[persistence.View]*storedContent{}}
}

func (s *memoryBackend) Open(_ context.Context, view persistence.View) (persistence.StoredContent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.contents[view]
	if v == nil {
		v = &storedContent{backend: s}
		s.contents[view] = v
	}
	if v.claimed {
		return nil, errors.New("claimed")
	}
	v.claimed = true
	return v, nil
}

func (v *storedContent) Load(_ context.Context,
	f func(persistence.Checkpoint, persistence.LoadFunc) error) error {
	if v.checkpoint == (persistence.Checkpoint{}) {
		return nil
	}
	return f(v.checkpoint, v.load)
}

func (v *storedContent) load(onRecord func(persistence.Record) error) (err error) {
	for _, r := range v.records {
		record := persistence.Record{Head: bytes.Clone(r[0])}
		if r[1] != nil {
			record.Bodies, record.Retained = func() ([]byte, error) { return r[1], nil }, len(r[1])
		}
		err = errors.Join(err, onRecord(record))
	}
	return err
}

func (v *storedContent) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.PutRecord) error) error {
	v.backend.mu.Lock()
	defer v.backend.mu.Unlock()
	if v.backend.failure != nil {
		return v.backend.failure
	}
	if whole {
		v.records, v.changes = nil, 0
	}
	v.backend.saves++
	v.checkpoint = at
	return write(func(head, bodies []byte) error {
		if v.records = append(v.records, [2][]byte{bytes.Clone(head), bytes.Clone(bodies)}); !whole {
			v.changes++
		}
		return nil
	})
}

func (v *storedContent) NeedsRewrite() bool { return v.changes > 20 }

func (v *storedContent) Close() error {
	v.backend.mu.Lock()
	defer v.backend.mu.Unlock()
	v.claimed = false
	return nil
}

func (s *memoryBackend) onlyContent(t *testing.T) *storedContent {
	t.Helper()
	for _, v := range s.contents {
		return v
	}
	t.Fatal("no content is persisted")
	return nil
}

// TestSavedContentIsNotRetained verifies that saved content is not retained in memory after the cache is
// dropped.
func TestSavedContentIsNotRetained(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("a", "one"))
	f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond})
	i := startSynced(t, f)
	freed := make(chan bool, 1)
	item, _ := i.core.Snapshot().Get("a/one")
	runtime.AddCleanup(item.(*packed.Object), func(int) { freed <- true }, 0)
	await(t, func() bool { return i.Persistence().Saves > 0 })
	must(t, i.GetStore().Delete(widget("a", "one")))
	await(t, func() bool {
		runtime.GC()
		return len(freed) > 0
	})
}

// TestRestoredObjectsLeaveTheirBlocks verifies that restored objects do not retain the blocks in which they
// were saved, in any storage mode.
func TestRestoredObjectsLeaveTheirBlocks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, storage := range map[string]Storage{
		"compressed": {Mode: StorageCompressed, Compression: s2.New()},
		"packed":     {}, "adaptive": adaptive,
	} {
		t.Run(name, func(t *testing.T) {
			server, s := newServer(t), newMemoryBackend()
			options := ResourceOptions{Storage: storage}
			count := manyWidgets(t, server)
			persistWidgets(t, server, s, options)
			f := newFactory(t, server, Options{Persistence: s, PersistenceInterval: time.Millisecond,
				Defaults: options})
			i := startSynced(t, f)
			inBlocks := func() (objects int) {
				for _, item := range i.core.Snapshot().All {
					if item.(*packed.Object).Block() != nil {
						objects++
					}
				}
				return objects
			}
			await(t, func() bool { return inBlocks() == 0 })
			r := &resumedInformer{Informer: i, factory: f, server: server, diary: &eventLog{}}
			r.check(t)
			if stats := i.Stats(); stats.Objects != count {
				t.Errorf("Stats() = %+v, want %d objects", stats, count)
			}
		})
	}
}
