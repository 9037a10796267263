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
	// ErrInUse is reported where another process uses the folder, or another Store of this one.
	ErrInUse = errors.New("the folder is in use by another process, or by another Store of this one: give each its own")
	// ErrClosed is reported after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrViewInUse is reported where two informers that show the same are to be kept in one folder.
	ErrViewInUse = errors.New("the same view of the type is kept for another informer")
	// ErrFull is reported where there is too little room on the disk.
	ErrFull = errors.New("the disk is nearly full")
)

// Options configure a Store. The zero value works.
type Options struct {
	// MaxAge is how long a view is kept that no informer asks for. Default: 30 days.
	MaxAge time.Duration
	// Keys have everything encrypted by AES-256-GCM, and hold what is written with the first, and read with
	// any of them: to change the key, put the new one in front, and leave out the old one once all informers
	// have saved. Each has 32 bytes. What was written without a key, or with one that is not among them,
	// counts for nothing (ErrKey). Default: none, and nothing is encrypted.
	Keys [][]byte

	// fs is in the place of the machine's file system, with path names of its own.
	fs vfs.FS
	// pause is that after the first failure of the disk, and patience how long Close waits for it.
	pause, patience time.Duration
}

const (
	// firstPause is how long the disk is left alone after it has failed; it doubles with each failure, up to
	// longestPause.
	firstPause   = 10 * time.Second
	longestPause = time.Hour
	// closePatience is how long Close waits for what is being saved or loaded.
	closePatience = 10 * time.Second
)

const defaultMaxAge = 30 * 24 * time.Hour

// Store is a folder in which contents are kept. It is safe for concurrent use, and made by New.
type Store struct {
	dir     string
	options Options
	// sealing is nil where Options.Keys are wrong, which wrong says.
	sealing *sealing
	wrong   error

	mu struct {
		sync.Mutex
		// working is the work that is under way; nil: none is. There is no engine meanwhile.
		working *work
		// lock is held from the first use on.
		lock *folder
		// engine is nil before the first use, and after damage.
		engine *engine
		// retry is when the disk is tried again after it has failed, and pause is what comes after the next
		// failure.
		retry time.Time
		pause time.Duration
		// epoch counts the engines there have been.
		epoch   int
		closed  bool
		claimed map[string]bool
	}
}

var _ persistence.Backend = (*Store)(nil)

// New returns the Store of a folder, which is made with the first use, if need be: nothing can fail before.
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
	if options.patience <= 0 {
		options.patience = closePatience
	}
	s := &Store{dir: dir, options: options}
	s.mu.pause = options.pause
	s.sealing, s.wrong = newSealing(options.Keys)
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

// ErrBusy is reported by Close where the disk does not answer to what is being saved or loaded.
var ErrBusy = errors.New("the disk does not answer: the folder stays in use until the process ends")

// Close waits for what is being opened, saved or loaded, ten seconds at most, and ends the Store. What has
// been saved stays.
func (s *Store) Close() error {
	s.mu.Lock()
	closed, w := s.mu.closed, s.mu.working
	s.mu.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- s.end(w) }() // ended by the disk
	select {
	case err := <-ended:
		return err
	case <-time.After(s.options.patience):
		return ErrBusy
	}
}

// end closes the engine and unlocks the folder, after the work that was under way when the Store was closed.
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
		if err = e.close(); !e.still() {
			return errors.Join(err, ErrBusy)
		}
	}
	if lock != nil {
		err = errors.Join(err, lock.Close())
	}
	return err
}

// work is a change of the engine: opening it, or removing a damaged one. It runs in a goroutine without the
// lock of the Store, because a disk may not answer.
type work struct {
	began time.Time
	done  chan struct{} // closed at the end
	err   error         // of the work; read after done
}

// errNoAnswer is for work that takes longer than the patience of a Store. It goes on.
var errNoAnswer = errors.New("the disk does not answer")

// beginLocked starts work, of which there is one at a time.
func (s *Store) beginLocked(f func() error) *work {
	w := &work{began: time.Now(), done: make(chan struct{})}
	s.mu.working = w
	go func() { // ended by the disk
		w.err = f()
		s.mu.Lock()
		s.mu.working = nil
		s.mu.Unlock()
		close(w.done)
	}()
	return w
}

// wait returns the error of the work, or errNoAnswer when the work has taken too long.
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

// open returns the engine, which it opens if need be, and its number. It waits for a disk for the patience of
// the Store.
func (s *Store) open() (*engine, int, error) {
	for {
		e, epoch, w, err := s.begin()
		if err != nil || e != nil {
			return e, epoch, err
		}
		if err := w.wait(s.options.patience); err != nil {
			return nil, 0, fmt.Errorf("opening %s: %w", s.dir, err)
		}
	}
}

// begin returns the engine and its number, or the work to wait for.
func (s *Store) begin() (*engine, int, *work, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, 0, nil, ErrClosed
	}
	if s.wrong != nil {
		return nil, 0, nil, s.wrong
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

// openFolder locks the folder, unless it is locked, and opens an engine. One that has failed stays until it
// is tried again.
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

// recoverLocked gives an engine up that has failed, once it has been left alone for a while: the next one
// begins with what has been saved by then, as after a crash. What goroutines of the old one wait in stays in
// memory, so that pauses grow.
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
		return fmt.Errorf("%w (tried again in %v)", failure, left.Round(time.Second))
	case !e.still():
		return fmt.Errorf("%w (and does not answer)", failure)
	}
	s.mu.engine, s.mu.retry = nil, time.Time{}
	return nil
}

// use calls f with the engine of a number; zero: of any. What turns out to be damaged is removed: everything
// that was kept is lost then, and the next engine begins empty.
func (s *Store) use(epoch int, f func(e *engine, db *pebble.DB) error) (used int, err error) {
	e, used, err := s.open()
	if err != nil {
		return 0, err
	}
	if epoch != 0 && epoch != used {
		return used, errLost
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
	if errors.Is(err, errEnded) { // by somebody else, since it was opened
		return s.use(epoch, f)
	}
	if damage := e.damage(err); damage != nil {
		s.discard(e)
		return used, fmt.Errorf("%s is damaged, and removed: %w", s.dir, damage)
	}
	return used, err
}

// checkFolder ends an engine whose folder was removed: its writes go to files that no process finds again.
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

// errLost is for changes of a content that is not kept any more.
var errLost = errors.New("what was kept before is lost")

// discard removes what an engine keeps.
func (s *Store) discard(e *engine) {
	s.mu.Lock()
	if s.mu.engine != e || s.mu.closed { // another caller has, or the next process does
		s.mu.Unlock()
		return
	}
	s.mu.engine = nil
	w := s.beginLocked(func() error {
		_ = e.close()                     // it is damaged
		_ = s.options.fs.RemoveAll(e.dir) // or the next one reports what is wrong with it
		return nil
	})
	s.mu.Unlock()
	_ = w.wait(s.options.patience) // whoever opens the next engine waits for the rest
}
