package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/snapshot"
)

var (
	// ErrInUse is reported if another process, or another Store of this process, uses the folder.
	ErrInUse = errors.New("the folder is in use by another process, or by another Store of this process: use one folder per Store")
	// ErrClosed is reported after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrContentInUse is reported if two informers with equal options use the same Store.
	ErrContentInUse = errors.New("another informer with the same options persists the type")
	// ErrKey is reported if persisted data is encrypted with a key that is not in Options.Keys, or is not
	// encrypted although Options.Keys is set. The data is ignored and overwritten.
	ErrKey = block.ErrKey
	// ErrBusy is returned by Close if the disk does not answer.
	ErrBusy = errors.New("the disk does not answer: the folder stays in use until it does, or until the process ends")
)

// Options configure a Store. The zero value works.
type Options struct {
	// MaxAge is the maximum time since the last save of a stored content. Older contents are removed when the
	// Store opens the folder. Default: 30 days.
	MaxAge time.Duration
	// Keys encrypt all data with AES-256-GCM. The first key writes, all keys read. To change the key, insert
	// the new one in front, and remove the old one after all informers have saved. Each key has 32 bytes.
	// Data that is not encrypted, or encrypted with another key, is ignored (ErrKey). Default: no encryption.
	Keys [][]byte
	// Snapshot is a file of 'crdcache snapshot save'. Informers of all objects and fields of a type, whose
	// content is not in the folder, start from it. It is never changed, nor encrypted. It is useful while the
	// server still has the changes since it was saved. Default: none.
	Snapshot string

	// disk is called before each operation on a path that changes the disk. Tests make it fail or block.
	disk func(operation, path string) error
}

// Store is a folder with the persisted objects of informers, one file for each informer. Create it with New.
// It is safe for concurrent use.
type Store struct {
	dir     string
	options Options
	// cipher is nil without keys, or if Options.Keys is invalid. keysErr is then the error.
	cipher *block.Cipher
	// compressors has *block.Compressor.
	compressors sync.Pool
	keysErr     error
	// folderToken is a mutex that guards lock while the folder is opened, which needs the disk. It has an
	// element while it is held.
	folderToken chan struct{}
	lock        *os.File         // of the folder; nil before the first use, and after the folder was removed
	snapshot    *snapshot.Source // Options.Snapshot

	// operations counts the running operations. It does not grow after Close.
	operations sync.WaitGroup
	mu         struct {
		sync.Mutex
		closed bool
		open   map[persistence.View]bool
	}
}

// New returns the Store of a folder. It creates the folder on first use, so New cannot fail.
func New(dir string, options Options) *Store {
	if options.MaxAge <= 0 {
		options.MaxAge = 30 * 24 * time.Hour
	}
	if options.disk == nil {
		options.disk = func(string, string) error { return nil }
	}
	s := &Store{dir: dir, options: options, folderToken: make(chan struct{}, 1),
		snapshot:    snapshot.NewSource(options.Snapshot),
		compressors: sync.Pool{New: func() any { return &block.Compressor{} }}}
	s.cipher, s.keysErr = block.NewCipher(options.Keys)
	s.mu.open = map[persistence.View]bool{}
	return s
}

// Open implements persistence.Backend.
func (s *Store) Open(ctx context.Context, view persistence.View) (persistence.StoredContent, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open[view] {
		return nil, ErrContentInUse
	}
	name, err := json.Marshal(view)
	if err != nil {
		return nil, err
	}
	s.mu.open[view] = true
	hash := sha256.Sum256(name)
	return &storedContent{store: s, view: view,
		path: filepath.Join(s.dir, hex.EncodeToString(hash[:16])+block.LogSuffix)}, nil
}

// begin begins an operation on the folder, which Close waits for. It opens the folder if necessary.
func (s *Store) begin(ctx context.Context) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.keysErr != nil {
		return nil, s.keysErr
	}
	s.mu.Lock()
	isClosed := s.mu.closed
	if !isClosed {
		s.operations.Add(1)
	}
	s.mu.Unlock()
	if isClosed {
		return nil, ErrClosed
	}
	if err := s.ensureFolder(ctx); err != nil {
		s.operations.Done()
		return nil, fmt.Errorf("persist in %s: %w", s.dir, err)
	}
	return s.operations.Done, nil
}

// ensureFolder opens the folder, or opens it again after it was removed.
func (s *Store) ensureFolder(ctx context.Context) error {
	select {
	case s.folderToken <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.folderToken }()
	if s.lock == nil {
		lock, err := s.openFolder(time.Now().Add(-s.options.MaxAge))
		s.lock = lock
		return err
	}
	err := s.checkFolder()
	if errors.Is(err, errFolderRemoved) {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil // the next operation opens it
	}
	return err
}

// Close waits for running operations and unlocks the folder. Saved data remains. When ctx ends, Close returns
// ErrBusy, and the folder is unlocked when the disk answers.
func (s *Store) Close(ctx context.Context) error {
	s.mu.Lock()
	wasClosed := s.mu.closed
	s.mu.closed = true
	s.mu.Unlock()
	if wasClosed {
		return nil
	}
	unlocked := make(chan error, 1)
	go func() { // ends when the disk answers
		s.operations.Wait()
		err := s.snapshot.Close()
		if s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
		unlocked <- err
	}()
	select {
	case err := <-unlocked:
		return err
	case <-ctx.Done():
		return fmt.Errorf("close %s: %w (%w)", s.dir, ErrBusy, context.Cause(ctx))
	}
}
