package dynamicinformer

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
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

func (v *storedContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	return v.checkpoint, v.checkpoint != persistence.Checkpoint{}, nil
}

func (v *storedContent) Load(_ context.Context, onRecord func(persistence.Record) error) (err error) {
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
