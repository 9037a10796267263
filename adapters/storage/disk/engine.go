package disk

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// engine is an open pebble store. By default, pebble ends the process after some errors. Here it only ends
// the engine.
type engine struct {
	db  *pebble.DB
	dir string
	fs  vfs.FS
	// ended is closed when pebble fails.
	ended chan struct{}
	// closeLock is read-locked by users of db, and locked to close it. pebble ends the process if db is used
	// after Close.
	closeLock sync.RWMutex
	closed    bool // guarded by closeLock

	mu struct {
		sync.Mutex
		failed           bool // broken is closed
		failure          error
		damageErr        error // corruption found in the background
		writesInProgress int
	}
}

// Sizes of pebble's memory and files.
const (
	memTableSize = 1 << 20
	cacheSize    = 1 << 20
	blockSize    = 32 << 10
	maxOpenFiles = 100
)

// lockedFolder is a locked folder. Its owner file has a random text, which shows whether the folder was
// removed and created again.
type lockedFolder struct {
	lock      io.Closer
	fs        vfs.FS
	ownerPath string // path of the owner file
	ownerText string
}

// lockFolder creates a folder if necessary, and locks it. It syncs the folder's entry, which pebble does not.
func lockFolder(dir string, options Options) (*lockedFolder, error) {
	if err := options.fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syncDir(options.fs, options.fs.PathDir(dir)); err != nil {
		return nil, err
	}
	lock, err := options.fs.Lock(options.fs.PathJoin(dir, "lock"))
	if err != nil {
		return nil, err
	}
	f := &lockedFolder{lock: lock, fs: options.fs, ownerPath: options.fs.PathJoin(dir, "owner"),
		ownerText: rand.Text()}
	if err := f.writeOwner(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

func (f *lockedFolder) writeOwner() error {
	file, err := f.fs.Create(f.ownerPath, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(f.ownerText))
	return errors.Join(err, file.Close())
}

var errFolderRemoved = errors.New("the folder was removed or replaced while it was in use")

// check returns errFolderRemoved if the folder was removed or replaced, or an error of the disk.
func (f *lockedFolder) check() error {
	file, err := f.fs.Open(f.ownerPath)
	if errors.Is(err, fs.ErrNotExist) {
		return errFolderRemoved
	}
	if err != nil {
		return err
	}
	text, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err == nil && string(text) != f.ownerText {
		return errFolderRemoved
	}
	return err
}

func (f *lockedFolder) Close() error { return f.lock.Close() }

// openEngine opens the store in a folder. It removes a damaged store and opens a new one. It returns the
// engine even with an error.
func openEngine(dir string, options Options) (*engine, error) {
	e, err := openWithoutRepair(dir, options)
	if err != nil && !isEnvironmentError(err) {
		if err := options.fs.RemoveAll(e.dir); err != nil {
			return e, err
		}
		e, err = openWithoutRepair(dir, options)
	}
	return e, err
}

// isEnvironmentError reports whether the error of opening a store has a cause outside its files.
func isEnvironmentError(err error) bool {
	var number syscall.Errno
	return errors.Is(err, errWrite) || errors.Is(err, ErrInUse) || errors.Is(err, fs.ErrPermission) ||
		errors.As(err, &number) && number != syscall.ENOENT
}

func openWithoutRepair(dir string, options Options) (*engine, error) {
	e := &engine{dir: options.fs.PathJoin(dir, "db"), fs: options.fs, ended: make(chan struct{})}
	return e, e.runGuarded(func() error { return e.open(time.Now().Add(-options.MaxAge)) })
}

// open opens the store, and removes the contents saved last before a time.
func (e *engine) open(oldest time.Time) (err error) {
	if err := e.fs.MkdirAll(e.dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(e.fs, e.fs.PathDir(e.dir)); err != nil {
		return err
	}
	e.db, err = pebble.Open(e.dir, e.pebbleOptions())
	if err != nil {
		return err
	}
	if err := removeExpired(e.db, oldest); err != nil {
		return errors.Join(err, e.db.Close())
	}
	return nil
}

func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (e *engine) pebbleOptions() *pebble.Options {
	listener := &pebble.EventListener{
		BackgroundError: func(err error) { e.recordCorruption(err) },
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			e.recordCorruption(errors.Join(pebble.ErrCorruption, info.Details))
		},
	}
	o := &pebble.Options{
		FS: guardedFS{e.fs, e}, Logger: e, EventListener: listener, MemTableSize: memTableSize,
		CacheSize: cacheSize, MaxOpenFiles: maxOpenFiles,
		FormatMajorVersion: pebble.FormatNewest,
	}
	for k := range o.Levels {
		o.Levels[k].BlockSize = blockSize
		// records are compressed already
		o.Levels[k].Compression = func() *block.CompressionProfile { return block.NoCompression }
	}
	return o
}

var errEngineClosed = errors.New("the engine is closed")

// withDB calls f with the store. It returns early if pebble fails.
func (e *engine) withDB(f func(db *pebble.DB) error) error {
	return e.runGuarded(func() error {
		e.closeLock.RLock()
		defer e.closeLock.RUnlock()
		if e.closed {
			return errEngineClosed
		}
		return f(e.db)
	})
}

// close closes the store after all calls of withDB have returned, unless pebble fails. Later calls return
// errEngineClosed.
func (e *engine) close() error {
	return e.runGuarded(func() error {
		e.closeLock.Lock()
		defer e.closeLock.Unlock()
		e.closed = true
		return e.db.Close()
	})
}

func (e *engine) runGuarded(f func() error) error {
	done := make(chan error, 1)
	// Ended by f, or blocked until the process ends if pebble fails.
	go func() {
		defer func() {
			if reason := recover(); reason != nil {
				e.endWithError(fmt.Errorf("pebble: %v", reason))
			}
		}()
		select {
		case <-e.ended:
		default:
			done <- f()
		}
	}()
	select {
	case err := <-done:
		return err
	case <-e.ended:
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.mu.failure
	}
}

func (e *engine) endWithError(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.failed {
		e.mu.failed, e.mu.failure = true, fmt.Errorf("the disk has failed: %w", cause)
		close(e.ended)
	}
}

// recordCorruption records corruption found in the background.
func (e *engine) recordCorruption(err error) {
	if errors.Is(err, pebble.ErrCorruption) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.mu.damageErr = err
	}
}

// corruptionError returns the error if data is corrupted, or corruption found in the background.
func (e *engine) corruptionError(err error) error {
	if errors.Is(err, pebble.ErrCorruption) || errors.Is(err, errDamaged) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.damageErr
}

// errDamaged is the error for data that is valid for pebble, but not for this package.
var errDamaged = errors.New("the persisted data is damaged")

// Infof implements pebble.Logger. It discards pebble's log.
func (e *engine) Infof(string, ...any) {}

// Errorf implements pebble.Logger. It does nothing, because errors are returned, too.
func (e *engine) Errorf(string, ...any) {}

// endError returns the error that ended the engine, or nil.
func (e *engine) endError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.failure
}

// Fatalf implements pebble.Logger. It must neither return nor end the process.
func (e *engine) Fatalf(format string, args ...any) {
	e.endWithError(fmt.Errorf(format, args...))
	select {}
}

// minFreeSpace is the free space required for saving: pebble does not handle full disks well.
const minFreeSpace = 64 << 20

func (e *engine) checkFreeSpace() error {
	usage, err := e.fs.GetDiskUsage(e.dir)
	if err == nil && usage.AvailBytes < minFreeSpace {
		return fmt.Errorf("%w: %d MiB free, %d required", ErrFull, usage.AvailBytes>>20, minFreeSpace>>20)
	}
	return nil // some file systems do not report it
}
