package disk

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// parkingFS ends its engine when a write fails, and parks the goroutine that wrote. Pebble takes a failed
// write for the end of the process, and panics where no caller can recover; while it opens a store, it writes
// again forever. From its end on the engine changes nothing on the disk, so that another one can be opened in
// its place.
type parkingFS struct {
	vfs.FS
	engine *engine
}

// changes calls f, which changes something on the disk, unless the engine has ended.
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

// errWrite is for writes that have failed.
var errWrite = errors.New("writing")

// enter notes that something is being changed. It is false when the engine has ended.
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

// still reports whether an engine that has ended is not changing anything any more: a disk may take its time.
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

// Create implements vfs.FS.
func (p parkingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.Create(name, category) })
}

// OpenReadWrite implements vfs.FS.
func (p parkingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	options ...vfs.OpenOption) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.OpenReadWrite(name, category, options...) })
}

// ReuseForWrite implements vfs.FS.
func (p parkingFS) ReuseForWrite(before, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(func() (vfs.File, error) { return p.FS.ReuseForWrite(before, name, category) })
}

// OpenDir implements vfs.FS.
func (p parkingFS) OpenDir(name string) (vfs.File, error) {
	f, err := p.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return parkingFile{f, p.engine}, nil
}

// Rename implements vfs.FS.
func (p parkingFS) Rename(before, name string) error {
	return p.engine.changes(func() error { return p.FS.Rename(before, name) })
}

// What follows may fail, as ever, but not happen any more when the engine has ended.

// Remove implements vfs.FS.
func (p parkingFS) Remove(name string) error {
	return p.engine.tries(func() error { return p.FS.Remove(name) })
}

// RemoveAll implements vfs.FS.
func (p parkingFS) RemoveAll(name string) error {
	return p.engine.tries(func() error { return p.FS.RemoveAll(name) })
}

// Link implements vfs.FS.
func (p parkingFS) Link(before, name string) error {
	return p.engine.tries(func() error { return p.FS.Link(before, name) })
}

// MkdirAll implements vfs.FS.
func (p parkingFS) MkdirAll(dir string, mode os.FileMode) error {
	return p.engine.tries(func() error { return p.FS.MkdirAll(dir, mode) })
}

// tries is changes for what pebble can take a failure of.
func (e *engine) tries(f func() error) error {
	if !e.enter() {
		select {}
	}
	defer e.leave()
	return f()
}

// Lock implements vfs.FS: the folder is the Store's, whatever becomes of an engine.
func (p parkingFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// Unwrap implements vfs.FS.
func (p parkingFS) Unwrap() vfs.FS { return p.FS }

// parkingFile is a file of a parkingFS that is written to.
type parkingFile struct {
	vfs.File
	engine *engine
}

// Write implements vfs.File.
func (f parkingFile) Write(data []byte) (n int, err error) {
	err = f.engine.changes(func() (err error) {
		n, err = f.File.Write(data)
		return err
	})
	return n, err
}

// WriteAt implements vfs.File.
func (f parkingFile) WriteAt(data []byte, offset int64) (n int, err error) {
	err = f.engine.changes(func() (err error) {
		n, err = f.File.WriteAt(data, offset)
		return err
	})
	return n, err
}

// Sync implements vfs.File.
func (f parkingFile) Sync() error { return f.engine.changes(f.File.Sync) }

// SyncData implements vfs.File.
func (f parkingFile) SyncData() error { return f.engine.changes(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f parkingFile) SyncTo(length int64) (whole bool, err error) {
	err = f.engine.changes(func() (err error) {
		whole, err = f.File.SyncTo(length)
		return err
	})
	return whole, err
}
