package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// parkingFS ends its engine when a write fails, and blocks the writing goroutine. Pebble treats failed
// writes as fatal and panics where no caller can recover; while opening a store, it retries forever. A
// failed engine writes nothing more, so another one can be opened in its place.
// its place.
type parkingFS struct {
	vfs.FS
	engine *engine
}

// changes calls f, which writes to the disk. If the engine has failed, or f fails, it never returns.
func (e *engine) changes(f func() error) error {
	if !e.enter() {
		select {} // until the process ends
	}
	err := f()
	if err != nil {
		e.fail(fmt.Errorf("%w: %w", errWrite, err))
	}
	e.leave()
	if err != nil {
		select {}
	}
	return nil
}

// errWrite is the error of failed writes.
var errWrite = errors.New("write")

// enter counts a write. It returns false if the engine has failed.
func (e *engine) enter() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.once {
		e.mu.changing++
	}
	return !e.mu.once
}

func (e *engine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.changing--
}

// still reports whether no write of a failed engine is running: disks may be slow.
func (e *engine) still() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.changing == 0
}

func (p parkingFS) file(open func() (vfs.File, error)) (f vfs.File, err error) {
	err = p.engine.changes(func() (err error) {
		f, err = open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return parkingFile{f, p.engine}, nil
}

func (p parkingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.Create(name, category) })
}

func (p parkingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	options ...vfs.OpenOption) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.OpenReadWrite(name, category, options...) })
}

func (p parkingFS) ReuseForWrite(before, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.ReuseForWrite(before, name, category) })
}

func (p parkingFS) OpenDir(name string) (vfs.File, error) {
	f, err := p.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return parkingFile{f, p.engine}, nil
}

func (p parkingFS) Rename(before, name string) error {
	return p.engine.changes(func() error { return p.FS.Rename(before, name) })
}

// Pebble tolerates errors of the following operations. A failed engine must not run them either.

func (p parkingFS) Remove(name string) error {
	return p.engine.tries(func() error { return p.FS.Remove(name) })
}

func (p parkingFS) RemoveAll(name string) error {
	return p.engine.tries(func() error { return p.FS.RemoveAll(name) })
}

func (p parkingFS) Link(before, name string) error {
	return p.engine.tries(func() error { return p.FS.Link(before, name) })
}

func (p parkingFS) MkdirAll(dir string, mode os.FileMode) error {
	return p.engine.tries(func() error { return p.FS.MkdirAll(dir, mode) })
}

// tries calls f, whose errors pebble tolerates.
func (e *engine) tries(f func() error) error {
	if !e.enter() {
		select {}
	}
	defer e.leave()
	return f()
}

// Lock implements vfs.FS. It does nothing, because the Store locks the folder for all engines.
func (p parkingFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (p parkingFS) Unwrap() vfs.FS { return p.FS }

// parkingFile is a file of a parkingFS.
type parkingFile struct {
	vfs.File
	engine *engine
}

func (f parkingFile) Write(data []byte) (n int, err error) {
	err = f.engine.changes(func() (err error) {
		n, err = f.File.Write(data)
		return err
	})
	return n, err
}

func (f parkingFile) WriteAt(data []byte, offset int64) (n int, err error) {
	err = f.engine.changes(func() (err error) {
		n, err = f.File.WriteAt(data, offset)
		return err
	})
	return n, err
}

func (f parkingFile) Sync() error { return f.engine.changes(f.File.Sync) }

func (f parkingFile) SyncData() error { return f.engine.changes(f.File.SyncData) }

func (f parkingFile) SyncTo(length int64) (whole bool, err error) {
	err = f.engine.changes(func() (err error) {
		whole, err = f.File.SyncTo(length)
		return err
	})
	return whole, err
}
