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
	contents map[string]*storedContent
	// failure is the error that Save returns, if any. saves counts the successful calls.
	failure error
	saves   int
	// jsonOnly stores each object separately, as JSON.
	jsonOnly bool
}

type storedContent struct {
	backend    *memoryBackend
	checkpoint persistence.Checkpoint
	objects    map[string][]byte
	claimed    bool
	// blocks and log are used instead of objects unless jsonOnly is set.
	blocks [][2][]byte
	log    []loggedChange
}

// loggedChange is a change after the blocks.
type loggedChange struct {
	key  string
	json []byte
}

func newMemoryBackend() *memoryBackend { return &memoryBackend{contents: map[string]*storedContent{}} }

func (s *memoryBackend) Open(_ context.Context, key string) (persistence.StoredContent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.contents[key]
	if v == nil {
		v = &storedContent{backend: s, objects: map[string][]byte{}}
		s.contents[key] = v
	}
	if v.claimed {
		return nil, errors.New("claimed")
	}
	v.claimed = true
	if !s.jsonOnly {
		return storedBlocks{v}, nil
	}
	return v, nil
}

type storedBlocks struct{ *storedContent }

func (v storedBlocks) SaveBlocks(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.BlockWriter) error) error {
	v.backend.mu.Lock()
	defer v.backend.mu.Unlock()
	if v.backend.failure != nil {
		return v.backend.failure
	}
	if whole {
		v.blocks, v.log = nil, nil
	}
	v.backend.saves++
	v.checkpoint = at
	return write(v)
}

func (v storedBlocks) PutBlock(head, bodies []byte) error {
	v.blocks = append(v.blocks, [2][]byte{bytes.Clone(head), bytes.Clone(bodies)})
	return nil
}

func (v storedBlocks) Put(key string, text []byte) error {
	v.log = append(v.log, loggedChange{key, bytes.Clone(text)})
	return nil
}

func (v storedBlocks) Delete(key string) error { return v.Put(key, nil) }

func (v storedBlocks) LoadBlocks(_ context.Context, changed func(string, []byte) error,
	block func([]byte, func() ([]byte, error), int) error) error {
	var failure error
	for _, change := range v.log {
		failure = errors.Join(failure, changed(change.key, change.json))
	}
	for _, b := range v.blocks {
		failure = errors.Join(failure, block(bytes.Clone(b[0]), func() ([]byte, error) { return b[1], nil },
			len(b[1])))
	}
	return failure
}

func (v storedBlocks) NeedsRewrite() bool { return len(v.log) > 20 }

func (v *storedContent) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	return v.checkpoint, v.checkpoint != persistence.Checkpoint{}, nil
}

func (v *storedContent) Load(_ context.Context, object func([]byte) error) error {
	for _, text := range v.objects {
		if err := object(text); err != nil {
			return err
		}
	}
	return nil
}

func (v *storedContent) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.Writer) error) error {
	v.backend.mu.Lock()
	defer v.backend.mu.Unlock()
	if v.backend.failure != nil {
		return v.backend.failure
	}
	if whole {
		v.objects = map[string][]byte{}
	}
	v.backend.saves++
	v.checkpoint = at
	return write(v)
}

func (v *storedContent) Put(key string, text []byte) error {
	v.objects[key] = bytes.Clone(text)
	return nil
}

func (v *storedContent) Delete(key string) error {
	delete(v.objects, key)
	return nil
}

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
