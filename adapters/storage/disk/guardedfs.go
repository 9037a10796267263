package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guardedFS ends its engine when a write fails, and blocks the writing goroutine. Pebble treats failed
// writes as fatal and panics where no caller can recover; while opening a store, it retries forever. A
// failed engine writes nothing more, so another one can be opened in its place.
type guardedFS struct {
	vfs.FS
	engine *engine
}

// mustWrite calls f, which writes to the disk. If the engine has failed, or f fails, it never returns.
func (e *engine) mustWrite(f func() error) error {
	if !e.beginWrite() {
		select {} // until the process ends
	}
	err := f()
	if err != nil {
		e.endWithError(fmt.Errorf("%w: %w", errWrite, err))
	}
	e.endWrite()
	if err != nil {
		select {}
	}
	return nil
}

var errWrite = errors.New("write")

// beginWrite counts a write. It returns false if the engine has failed.
func (e *engine) beginWrite() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.failed {
		e.mu.writesInProgress++
	}
	return !e.mu.failed
}

func (e *engine) endWrite() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.writesInProgress--
}

// isIdle reports whether no write is running. On a slow disk, writes can outlast the failure of their engine.
func (e *engine) isIdle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.writesInProgress == 0
}

func (g guardedFS) openFile(open func() (vfs.File, error)) (f vfs.File, err error) {
	err = g.engine.mustWrite(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g.engine}, nil
}

func (g guardedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.openFile(func() (vfs.File, error) { return g.FS.Create(name, category) })
}

func (g guardedFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	options ...vfs.OpenOption) (vfs.File, error) {
	return g.openFile(func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, options...) })
}

func (g guardedFS) ReuseForWrite(oldName, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.openFile(func() (vfs.File, error) { return g.FS.ReuseForWrite(oldName, name, category) })
}

func (g guardedFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardedFile{f, g.engine}, nil
}

func (g guardedFS) Rename(oldName, name string) error {
	return g.engine.mustWrite(func() error { return g.FS.Rename(oldName, name) })
}

// Pebble tolerates errors of the following operations. A failed engine must not run them either.

func (g guardedFS) Remove(name string) error {
	return g.engine.tryWrite(func() error { return g.FS.Remove(name) })
}

func (g guardedFS) RemoveAll(name string) error {
	return g.engine.tryWrite(func() error { return g.FS.RemoveAll(name) })
}

func (g guardedFS) Link(oldName, name string) error {
	return g.engine.tryWrite(func() error { return g.FS.Link(oldName, name) })
}

func (g guardedFS) MkdirAll(dir string, mode os.FileMode) error {
	return g.engine.tryWrite(func() error { return g.FS.MkdirAll(dir, mode) })
}

// tryWrite calls f. Pebble tolerates its errors.
func (e *engine) tryWrite(f func() error) error {
	if !e.beginWrite() {
		select {}
	}
	defer e.endWrite()
	return f()
}

// Lock implements vfs.FS. It does nothing, because the Store locks the folder for all engines.
func (g guardedFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (g guardedFS) Unwrap() vfs.FS { return g.FS }

type guardedFile struct {
	vfs.File
	engine *engine
}

func (f guardedFile) Write(data []byte) (n int, err error) {
	err = f.engine.mustWrite(func() (err error) {
		n, err = f.File.Write(data)
		return err
	})
	return n, err
}

func (f guardedFile) WriteAt(data []byte, offset int64) (n int, err error) {
	err = f.engine.mustWrite(func() (err error) {
		n, err = f.File.WriteAt(data, offset)
		return err
	})
	return n, err
}

func (f guardedFile) Sync() error     { return f.engine.mustWrite(f.File.Sync) }
func (f guardedFile) SyncData() error { return f.engine.mustWrite(f.File.SyncData) }

func (f guardedFile) SyncTo(length int64) (fullSync bool, err error) {
	err = f.engine.mustWrite(func() (err error) {
		fullSync, err = f.File.SyncTo(length)
		return err
	})
	return fullSync, err
}
