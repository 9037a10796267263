package disk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer"
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
	// Keys have everything encrypted by AES-256-GCM, and hold what is written with the first, and read with any of them: to
	// change the key, put the new one in front, and leave out the old one once all informers have saved. Each has 32 bytes.
	// What was written without a key, or with one that is not among them, counts for nothing (ErrKey). Default: none, and
	// nothing is encrypted.
	Keys [][]byte

	// fs is in the place of the machine's file system, with path names of its own.
	fs vfs.FS
}

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
		// engine is nil before the first use, and after damage.
		engine *engine
		// epoch counts the engines there have been.
		epoch   int
		closed  bool
		claimed map[string]bool
	}
}

var _ dynamicinformer.Persistence = (*Store)(nil)

// New returns the Store of a folder, which is made with the first use, if need be: nothing can fail before.
func New(dir string, options Options) *Store {
	if options.MaxAge <= 0 {
		options.MaxAge = defaultMaxAge
	}
	if options.fs == nil {
		options.fs = privateFS{vfs.Default}
	}
	s := &Store{dir: dir, options: options}
	s.sealing, s.wrong = newSealing(options.Keys)
	s.mu.claimed = map[string]bool{}
	return s
}

// View implements dynamicinformer.Persistence.
func (s *Store) View(key string) (dynamicinformer.PersistedView, error) {
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

// Close waits for what is being saved or loaded, and ends the Store. What has been saved stays.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	e := s.mu.engine
	s.mu.engine = nil
	if e == nil {
		return nil
	}
	return e.close()
}

// open returns the engine, which it opens if need be, and its number.
func (s *Store) open() (*engine, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, 0, ErrClosed
	}
	if s.wrong != nil {
		return nil, 0, s.wrong
	}
	if s.mu.engine == nil {
		e, err := openEngine(s.dir, s.options)
		if err != nil {
			return nil, 0, fmt.Errorf("opening %s: %w", s.dir, err)
		}
		s.mu.engine = e
		s.mu.epoch++
	}
	return s.mu.engine, s.mu.epoch, nil
}

// use calls f with the engine of a number; zero: of any. What turns out to be damaged is removed: everything that was kept
// is lost then, and the next engine begins empty.
func (s *Store) use(epoch int, f func(e *engine, db *pebble.DB) error) (used int, err error) {
	e, used, err := s.open()
	if err != nil {
		return 0, err
	}
	if epoch != 0 && epoch != used {
		return used, errLost
	}
	err = e.do(func(db *pebble.DB) error { return f(e, db) })
	if errors.Is(err, errEnded) { // by somebody else, since it was opened
		return s.use(epoch, f)
	}
	if damage := e.damage(err); damage != nil {
		s.discard(e)
		return used, fmt.Errorf("%s is damaged, and removed: %w", s.dir, damage)
	}
	return used, err
}

// errLost is for changes of a content that is not kept any more.
var errLost = errors.New("what was kept before is lost")

// discard removes what an engine keeps.
func (s *Store) discard(e *engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.engine != e {
		return // somebody else has
	}
	s.mu.engine = nil
	_ = e.close()                     // it is damaged
	_ = s.options.fs.RemoveAll(e.dir) // or the next one reports what is wrong with it
}
