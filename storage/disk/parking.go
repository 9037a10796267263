package disk

import (
	"github.com/cockroachdb/pebble/v2/vfs"
)

// parkingFS ends its engine, and parks who called, where something cannot be written: pebble takes a write that fails for
// the end of the process, and panics in ways that nobody can recover from. Before the engine has been opened, errors are
// returned, which pebble does, too.
type parkingFS struct {
	vfs.FS
	engine *engine
}

// parked returns err, unless the engine is open.
func (e *engine) parked(err error) error {
	if err != nil && e.opened.Load() {
		e.fail(err)
		select {} // until the process ends
	}
	return err
}

func (p parkingFS) file(f vfs.File, err error) (vfs.File, error) {
	if err := p.engine.parked(err); err != nil {
		return nil, err
	}
	return parkingFile{f, p.engine}, nil
}

// Create implements vfs.FS.
func (p parkingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(p.FS.Create(name, category))
}

// OpenReadWrite implements vfs.FS.
func (p parkingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return p.file(p.FS.OpenReadWrite(name, category, options...))
}

// ReuseForWrite implements vfs.FS.
func (p parkingFS) ReuseForWrite(before, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return p.file(p.FS.ReuseForWrite(before, name, category))
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
	return p.engine.parked(p.FS.Rename(before, name))
}

// Unwrap implements vfs.FS.
func (p parkingFS) Unwrap() vfs.FS { return p.FS }

// parkingFile is a file of a parkingFS that is written to.
type parkingFile struct {
	vfs.File
	engine *engine
}

// Write implements vfs.File.
func (f parkingFile) Write(data []byte) (int, error) {
	n, err := f.File.Write(data)
	return n, f.engine.parked(err)
}

// WriteAt implements vfs.File.
func (f parkingFile) WriteAt(data []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(data, offset)
	return n, f.engine.parked(err)
}

// Sync implements vfs.File.
func (f parkingFile) Sync() error { return f.engine.parked(f.File.Sync()) }

// SyncData implements vfs.File.
func (f parkingFile) SyncData() error { return f.engine.parked(f.File.SyncData()) }

// SyncTo implements vfs.File.
func (f parkingFile) SyncTo(length int64) (whole bool, err error) {
	whole, err = f.File.SyncTo(length)
	return whole, f.engine.parked(err)
}
