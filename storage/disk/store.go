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
	ErrInUse = errors.New("the folder is in use by another process, or by another Store of this one: give each its own")
	// ErrClosed is reported after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrViewInUse is reported if two informers with equal options use the same Store.
	ErrViewInUse = errors.New("another informer with the same options persists the type")
	// ErrFull is reported if the disk has too little free space.
	ErrFull = errors.New("the disk is nearly full")
)

// Options configure a Store. The zero value works.
type Options struct {
	// MaxAge is the maximum time since the last save of a view. Older views are removed when the Store opens
	// the folder. Default: 30 days.
	MaxAge time.Duration
	// Keys encrypt all data with AES-256-GCM. The first key writes, all keys read. To change the key,
	// insert the new one in front, and remove the old one after all informers have saved. Each key has 32
	// bytes. Data that is not encrypted, or encrypted with another key, is ignored (ErrKey). Default: no
	// encryption.
	Keys [][]byte

	// fs replaces the file system of the machine in tests.
	fs vfs.FS
	// pause is the pause after the first failure of the disk. timeout limits the time that opening the engine
	// and Close wait for the disk.
	pause, timeout time.Duration
}

const (
	// firstPause is the pause before the first retry after the disk has failed. It doubles with each
	// failure, up to longestPause.
	firstPause   = 10 * time.Second
	longestPause = time.Hour
	// closeTimeout is how long Close waits for running saves and loads.
	closeTimeout = 10 * time.Second
)

const defaultMaxAge = 30 * 24 * time.Hour

// Store is a folder with the persisted objects of informers, one view for each informer. Create it with New.
// It is safe for concurrent use.
type Store struct {
	dir     string
	options Options
	// sealing is nil if Options.Keys is invalid. keysErr is then the error.
	sealing *sealing
	keysErr error

	mu struct {
		sync.Mutex
		// working is the running work, or nil. There is no engine while it runs.
		working *work
		// lock is held from the first use.
		lock *folder
		// engine is nil before the first use, and after corruption.
		engine *engine
		// retry is the time of the next attempt after a failure of the disk, pause the pause after the next
		// failure.
		retry time.Time
		pause time.Duration
		// epoch is the number of engines so far.
		epoch   int
		closed  bool
		claimed map[string]bool
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
	if options.pause <= 0 {
		options.pause = firstPause
	}
	if options.timeout <= 0 {
		options.timeout = closeTimeout
	}
	s := &Store{dir: dir, options: options}
	s.mu.pause = options.pause
	s.sealing, s.keysErr = newSealing(options.Keys)
	s.mu.claimed = map[string]bool{}
	return s
}

// View implements persistence.Backend.
func (s *Store) View(ctx context.Context, key string) (persistence.View, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, _, err := s.open(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.claimed[key] {
		return nil, ErrViewInUse
	}
	s.mu.claimed[key] = true
	hash := sha256.Sum256([]byte(key))
	return &view{store: s, key: key, id: string(hash[:idLength])}, nil
}

// ErrBusy is returned by Close if the disk does not answer.
var ErrBusy = errors.New("the disk does not answer: the folder stays in use until the process ends")

// Close waits up to ten seconds for running work, saves and loads, and closes the Store. Saved data
// remains.
func (s *Store) Close() error {
	s.mu.Lock()
	closed, w := s.mu.closed, s.mu.working
	s.mu.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- s.end(w) }() // returns when the disk answers
	select {
	case err := <-ended:
		return err
	case <-time.After(s.options.timeout):
		return ErrBusy
	}
}

// end waits for w, closes the engine and unlocks the folder.
func (s *Store) end(w *work) error {
	if w != nil {
		<-w.done
	}
	s.mu.Lock()
	e, lock := s.mu.engine, s.mu.lock
	s.mu.engine, s.mu.lock = nil, nil
	s.mu.Unlock()
	var err error
	if e != nil {
		if err = e.close(); !e.idle() {
			return errors.Join(err, ErrBusy)
		}
	}
	if lock != nil {
		err = errors.Join(err, lock.Close())
	}
	return err
}

// work opens or removes an engine. It runs in a goroutine without the lock of the Store, because a disk may
// not answer.
type work struct {
	began time.Time
	done  chan struct{} // closed at the end
	err   error         // read after done
}

// errNoAnswer is the error for work that takes too long. The work continues.
var errNoAnswer = errors.New("the disk does not answer")

// beginLocked starts work; only one runs at a time.
func (s *Store) beginLocked(f func() error) *work {
	w := &work{began: time.Now(), done: make(chan struct{})}
	s.mu.working = w
	go func() { // returns when the disk answers
		w.err = f()
		s.mu.Lock()
		s.mu.working = nil
		s.mu.Unlock()
		close(w.done)
	}()
	return w
}

// wait waits for the work. It returns errNoAnswer if the work takes longer than the timeout.
func (w *work) wait(patience time.Duration) error {
	timer := time.NewTimer(time.Until(w.began.Add(patience)))
	defer timer.Stop()
	select {
	case <-w.done:
		return w.err
	case <-timer.C:
		return errNoAnswer
	}
}

// open returns the engine and its epoch. If there is no engine, open starts to open one, and waits up to the
// timeout of the Store.
func (s *Store) open() (*engine, int, error) {
	for {
		e, epoch, w, err := s.begin()
		if err != nil || e != nil {
			return e, epoch, err
		}
		if err := w.wait(s.options.timeout); err != nil {
			return nil, 0, fmt.Errorf("open %s: %w", s.dir, err)
		}
	}
}

// begin returns the engine and its epoch, or the work to wait for. It starts to open an engine if there is
// none.
func (s *Store) begin() (*engine, int, *work, error) {
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
	if s.mu.engine != nil || s.mu.working != nil {
		return s.mu.engine, s.mu.epoch, s.mu.working, nil
	}
	lock := s.mu.lock
	return nil, 0, s.beginLocked(func() error { return s.openFolder(lock) }), nil
}

// openFolder locks the folder unless it is locked, and opens an engine. An engine that failed to open
// is stored too: recoverLocked then returns its failure until the pause has passed.
func (s *Store) openFolder(lock *folder) (err error) {
	if lock != nil && errors.Is(lock.check(), errRemoved) {
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
	if err == nil || e.failure() != nil {
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
	failure := e.failure()
	if failure == nil {
		return nil
	}
	now := time.Now()
	if s.mu.retry.IsZero() {
		s.mu.retry = now.Add(s.mu.pause)
		s.mu.pause = min(2*s.mu.pause, longestPause)
	}
	switch left := s.mu.retry.Sub(now); {
	case left > 0:
		return fmt.Errorf("%w (retry in %v)", failure, left.Round(time.Second))
	case !e.idle():
		return fmt.Errorf("%w (the disk does not answer)", failure)
	}
	s.mu.engine, s.mu.retry = nil, time.Time{}
	return nil
}

// use opens the engine if necessary and calls f with it. It returns the epoch of the engine. If epoch is not
// zero and differs from it, use returns errRemovedData. use removes a damaged engine with all its data; the
// next engine is empty.
func (s *Store) use(epoch int, f func(e *engine, db *pebble.DB) error) (used int, err error) {
	e, used, err := s.open()
	if err != nil {
		return 0, err
	}
	if epoch != 0 && epoch != used {
		return used, errRemovedData
	}
	err = e.do(func(db *pebble.DB) error {
		err := f(e, db)
		if removed := s.checkFolder(e); err == nil || errors.Is(removed, errRemoved) {
			err = removed
		}
		return err
	})
	if errors.Is(err, errRemoved) {
		return used, err // missing files are not damage, and the folder may belong to another process
	}
	if errors.Is(err, errEngineClosed) { // another caller closed it meanwhile
		return s.use(epoch, f)
	}
	if damage := e.damage(err); damage != nil {
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
	if errors.Is(err, errRemoved) {
		err = fmt.Errorf("%s: %w", s.dir, err)
		e.fail(err)
	}
	return err
}

// errRemovedData is the error for changes to data that was removed.
var errRemovedData = errors.New("the data to change was removed")

// discard removes an engine and its data.
func (s *Store) discard(e *engine) {
	s.mu.Lock()
	if s.mu.engine != e || s.mu.closed { // another caller has done so, or the next process will
		s.mu.Unlock()
		return
	}
	s.mu.engine = nil
	w := s.beginLocked(func() error {
		_ = e.close()                     // it is damaged
		_ = s.options.fs.RemoveAll(e.dir) // the next engine reports an error
		return nil
	})
	s.mu.Unlock()
	_ = w.wait(s.options.timeout) // after the timeout, the next call of open waits for it
}
