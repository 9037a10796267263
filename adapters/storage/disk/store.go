package disk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

var (
	// ErrInUse is reported if another process, or another Store of this process, uses the folder.
	ErrInUse = errors.New("the folder is in use by another process, or by another Store of this process: use one folder per Store")
	// ErrClosed is reported after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrContentInUse is reported if two informers with equal options use the same Store.
	ErrContentInUse = errors.New("another informer with the same options persists the type")
	// ErrFull is reported if the disk has too little free space.
	ErrFull = errors.New("the disk is nearly full")
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

	// fs replaces the file system of the machine in tests.
	fs vfs.FS
	// retryPause is the pause after the first failure of the disk. timeout limits how long Open and Close
	// wait for the disk.
	retryPause, timeout time.Duration
}

const (
	// minRetryPause is the pause before the first retry after the disk has failed. It doubles with each
	// failure, up to maxRetryPause.
	minRetryPause = 10 * time.Second
	maxRetryPause = time.Hour
	// closeTimeout is the time that Close waits for running saves and loads.
	closeTimeout = 10 * time.Second
)

const defaultMaxAge = 30 * 24 * time.Hour

// Store is a folder with the persisted objects of informers, one content for each informer. Create it with
// New. It is safe for concurrent use.
type Store struct {
	dir     string
	options Options
	// cipher is nil if Options.Keys is invalid. keysErr is then the error.
	cipher  *recordCipher
	keysErr error

	mu struct {
		sync.Mutex
		// currentOperation is the running operation, or nil. There is no engine while it runs.
		currentOperation *engineOperation
		// lock is held from the first use.
		lock *lockedFolder
		// engine is nil before the first use, and after corruption.
		engine *engine
		// retryAt is the time of the next attempt after a failure of the disk. pause is the pause after the
		// next failure.
		retryAt time.Time
		pause   time.Duration
		// epoch is the number of engines so far.
		epoch    int
		closed   bool
		openKeys map[string]bool
	}
}

var _ persistence.Backend = (*Store)(nil)

// New returns the Store of a folder. It creates the folder on first use, so New cannot fail.
func New(dir string, options Options) *Store {
	if options.MaxAge <= 0 {
		options.MaxAge = defaultMaxAge
	}
	if options.fs == nil {
		options.fs = privateFS{vfs.Default}
	}
	if options.retryPause <= 0 {
		options.retryPause = minRetryPause
	}
	if options.timeout <= 0 {
		options.timeout = closeTimeout
	}
	s := &Store{dir: dir, options: options}
	s.mu.pause = options.retryPause
	s.cipher, s.keysErr = newRecordCipher(options.Keys)
	s.mu.openKeys = map[string]bool{}
	return s
}

// Open implements persistence.Backend.
func (s *Store) Open(ctx context.Context, key string) (persistence.StoredContent, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, _, err := s.open(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.openKeys[key] {
		return nil, ErrContentInUse
	}
	s.mu.openKeys[key] = true
	hash := sha256.Sum256([]byte(key))
	return &storedContent{store: s, key: key, id: string(hash[:idLength])}, nil
}

// ErrBusy is returned by Close if the disk does not answer.
var ErrBusy = errors.New("the disk does not answer: the folder stays in use until the process ends")

// Close waits up to ten seconds for running operations, saves and loads, and closes the Store. Saved data
// remains.
func (s *Store) Close() error {
	s.mu.Lock()
	closed, operation := s.mu.closed, s.mu.currentOperation
	s.mu.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	result := make(chan error, 1)
	go func() { result <- s.closeEngine(operation) }() // returns when the disk answers
	select {
	case err := <-result:
		return err
	case <-time.After(s.options.timeout):
		return ErrBusy
	}
}

// closeEngine waits for operation, closes the engine and unlocks the folder.
func (s *Store) closeEngine(operation *engineOperation) error {
	if operation != nil {
		<-operation.done
	}
	s.mu.Lock()
	e, lock := s.mu.engine, s.mu.lock
	s.mu.engine, s.mu.lock = nil, nil
	s.mu.Unlock()
	var err error
	if e != nil {
		if err = e.close(); !e.isIdle() {
			return errors.Join(err, ErrBusy)
		}
	}
	if lock != nil {
		err = errors.Join(err, lock.Close())
	}
	return err
}

// engineOperation opens or removes an engine. It runs in a goroutine without the lock of the Store, because a
// disk may not answer.
type engineOperation struct {
	startedAt time.Time
	done      chan struct{} // closed at the end
	err       error         // read after done
}

// errNoAnswer is the error for an operation that takes too long. The operation continues.
var errNoAnswer = errors.New("the disk does not answer")

// startLocked starts an operation; only one runs at a time.
func (s *Store) startLocked(f func() error) *engineOperation {
	operation := &engineOperation{startedAt: time.Now(), done: make(chan struct{})}
	s.mu.currentOperation = operation
	go func() { // returns when the disk answers
		operation.err = f()
		s.mu.Lock()
		s.mu.currentOperation = nil
		s.mu.Unlock()
		close(operation.done)
	}()
	return operation
}

// wait waits for the operation. It returns errNoAnswer if the operation takes longer than the timeout.
func (e *engineOperation) wait(timeout time.Duration) error {
	timer := time.NewTimer(time.Until(e.startedAt.Add(timeout)))
	defer timer.Stop()
	select {
	case <-e.done:
		return e.err
	case <-timer.C:
		return errNoAnswer
	}
}

// open returns the engine and its epoch. If there is no engine, open starts to open one, and waits up to the
// timeout of the Store.
func (s *Store) open() (*engine, int, error) {
	for {
		e, epoch, operation, err := s.engineOrStartOpening()
		if err != nil || e != nil {
			return e, epoch, err
		}
		if err := operation.wait(s.options.timeout); err != nil {
			return nil, 0, fmt.Errorf("open %s: %w", s.dir, err)
		}
	}
}

// engineOrStartOpening returns the engine and its epoch, or the operation to wait for. It starts to open an
// engine if there is none.
func (s *Store) engineOrStartOpening() (*engine, int, *engineOperation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, 0, nil, ErrClosed
	}
	if s.keysErr != nil {
		return nil, 0, nil, s.keysErr
	}
	if err := s.recoverLocked(); err != nil {
		return nil, 0, nil, err
	}
	if s.mu.engine != nil || s.mu.currentOperation != nil {
		return s.mu.engine, s.mu.epoch, s.mu.currentOperation, nil
	}
	lock := s.mu.lock
	return nil, 0, s.startLocked(func() error { return s.openFolder(lock) }), nil
}

// openFolder locks the folder unless it is locked, and opens an engine. An engine that failed to open
// is stored too: recoverLocked then returns its failure until the pause has passed.
func (s *Store) openFolder(lock *lockedFolder) (err error) {
	if lock != nil && errors.Is(lock.check(), errFolderRemoved) {
		s.mu.Lock()
		s.mu.lock = nil
		s.mu.Unlock()
		if err := lock.Close(); err != nil {
			return err
		}
		lock = nil
	}
	if lock == nil {
		if lock, err = lockFolder(s.dir, s.options); err != nil {
			return err
		}
	}
	e, err := openEngine(s.dir, s.options)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lock = lock
	if err == nil {
		s.mu.epoch++
	}
	if err == nil || e.endError() != nil {
		s.mu.engine = e
	}
	return err
}

// recoverLocked drops a failed engine after a pause. The next engine starts with the saved data, as after a
// crash. The blocked goroutines of the old engine are never freed, so the pauses grow.
func (s *Store) recoverLocked() error {
	e := s.mu.engine
	if e == nil {
		return nil
	}
	failure := e.endError()
	if failure == nil {
		return nil
	}
	now := time.Now()
	if s.mu.retryAt.IsZero() {
		s.mu.retryAt = now.Add(s.mu.pause)
		s.mu.pause = min(2*s.mu.pause, maxRetryPause)
	}
	switch remaining := s.mu.retryAt.Sub(now); {
	case remaining > 0:
		return fmt.Errorf("%w (retry in %v)", failure, remaining.Round(time.Second))
	case !e.isIdle():
		return fmt.Errorf("%w (the disk does not answer)", failure)
	}
	s.mu.engine, s.mu.retryAt = nil, time.Time{}
	return nil
}

// withEngine opens the engine if necessary and calls f with it. It returns the epoch of the engine. If epoch
// is not zero and differs from it, withEngine returns errRemovedData. withEngine removes a damaged engine
// with all its data; the next engine is empty.
func (s *Store) withEngine(epoch int, f func(e *engine, db *pebble.DB) error) (used int, err error) {
	e, used, err := s.open()
	if err != nil {
		return 0, err
	}
	if epoch != 0 && epoch != used {
		return used, errRemovedData
	}
	err = e.withDB(func(db *pebble.DB) error {
		err := f(e, db)
		if folderErr := s.checkFolder(e); err == nil || errors.Is(folderErr, errFolderRemoved) {
			err = folderErr
		}
		return err
	})
	if errors.Is(err, errFolderRemoved) {
		return used, err // missing files are not damage, and the folder may belong to another process
	}
	if errors.Is(err, errEngineClosed) { // another caller has closed the engine
		return s.withEngine(epoch, f)
	}
	if damage := e.corruptionError(err); damage != nil {
		s.discard(e)
		return used, fmt.Errorf("removed the damaged %s: %w", s.dir, damage)
	}
	return used, err
}

// checkFolder marks an engine as failed if its folder was removed, because no process would find its files.
func (s *Store) checkFolder(e *engine) error {
	s.mu.Lock()
	lock := s.mu.lock
	s.mu.Unlock()
	if lock == nil {
		return nil // the Store is being closed
	}
	err := lock.check()
	if errors.Is(err, errFolderRemoved) {
		err = fmt.Errorf("%s: %w", s.dir, err)
		e.endWithError(err)
	}
	return err
}

var errRemovedData = errors.New("the data to change was removed")

func (s *Store) discard(e *engine) {
	s.mu.Lock()
	// Another caller has removed the engine, or the next process will.
	if s.mu.engine != e || s.mu.closed {
		s.mu.Unlock()
		return
	}
	s.mu.engine = nil
	operation := s.startLocked(func() error {
		_ = e.close()                     // it is damaged
		_ = s.options.fs.RemoveAll(e.dir) // the next engine reports an error
		return nil
	})
	s.mu.Unlock()
	_ = operation.wait(s.options.timeout) // after the timeout, the next call of open waits for it
}
