package dynamicinformer

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// shelf is a Persistence in memory.
type shelf struct {
	mu    sync.Mutex
	views map[string]*shelved
	// fails is what Save answers with, if anything; saves counts the others.
	fails error
	saves int
	// texts says that each object is kept by itself, as JSON.
	texts bool
}

// shelved is what a shelf keeps of a view.
type shelved struct {
	shelf   *shelf
	at      persistence.Checkpoint
	objects map[string][]byte
	claimed bool
	// blocks and log are there in place of objects.
	blocks [][2][]byte
	log    []logged
}

// logged is a change behind blocks.
type logged struct {
	key  string
	json []byte
}

func newShelf() *shelf { return &shelf{views: map[string]*shelved{}} }

func (s *shelf) View(_ context.Context, key string) (persistence.View, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[key]
	if v == nil {
		v = &shelved{shelf: s, objects: map[string][]byte{}}
		s.views[key] = v
	}
	if v.claimed {
		return nil, errors.New("claimed")
	}
	v.claimed = true
	if !s.texts {
		return shelvedBlocks{v}, nil
	}
	return v, nil
}

// shelvedBlocks is a shelved that takes blocks.
type shelvedBlocks struct{ *shelved }

func (v shelvedBlocks) SaveBlocks(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.BlockWriter) error) error {
	v.shelf.mu.Lock()
	defer v.shelf.mu.Unlock()
	if v.shelf.fails != nil {
		return v.shelf.fails
	}
	if whole {
		v.blocks, v.log = nil, nil
	}
	v.shelf.saves++
	v.at = at
	return write(v)
}

func (v shelvedBlocks) PutBlock(head, bodies []byte) error {
	v.blocks = append(v.blocks, [2][]byte{bytes.Clone(head), bytes.Clone(bodies)})
	return nil
}

func (v shelvedBlocks) Put(key string, text []byte) error {
	v.log = append(v.log, logged{key, bytes.Clone(text)})
	return nil
}

func (v shelvedBlocks) Delete(key string) error { return v.Put(key, nil) }

func (v shelvedBlocks) LoadBlocks(_ context.Context, changed func(string, []byte) error,
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

func (v shelvedBlocks) Full() bool { return len(v.log) > 20 }

func (v *shelved) Checkpoint(context.Context) (persistence.Checkpoint, bool, error) {
	return v.at, v.at != persistence.Checkpoint{}, nil
}

func (v *shelved) Load(_ context.Context, object func([]byte) error) error {
	for _, text := range v.objects {
		if err := object(text); err != nil {
			return err
		}
	}
	return nil
}

func (v *shelved) Save(_ context.Context, at persistence.Checkpoint, whole bool,
	write func(persistence.Writer) error) error {
	v.shelf.mu.Lock()
	defer v.shelf.mu.Unlock()
	if v.shelf.fails != nil {
		return v.shelf.fails
	}
	if whole {
		v.objects = map[string][]byte{}
	}
	v.shelf.saves++
	v.at = at
	return write(v)
}

func (v *shelved) Put(key string, text []byte) error {
	v.objects[key] = bytes.Clone(text)
	return nil
}

func (v *shelved) Delete(key string) error {
	delete(v.objects, key)
	return nil
}

func (v *shelved) Close() error {
	v.shelf.mu.Lock()
	defer v.shelf.mu.Unlock()
	v.claimed = false
	return nil
}

// only returns what is kept of the only view.
func (s *shelf) only(t *testing.T) *shelved {
	t.Helper()
	for _, v := range s.views {
		return v
	}
	t.Fatal("nothing is kept")
	return nil
}
