package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// privateFS is a file system of files that only their owner can access.
type privateFS struct{ vfs.FS }

const privateMode = 0o600

func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.Create(name, category)
	return makePrivate(f, err, name)
}

func (p privateFS) OpenReadWrite(name string, category vfs.DiskWriteCategory,
	options ...vfs.OpenOption) (vfs.File, error) {
	f, err := p.FS.OpenReadWrite(name, category, options...)
	return makePrivate(f, err, name)
}

func (p privateFS) ReuseForWrite(oldName, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := p.FS.ReuseForWrite(oldName, name, category)
	return makePrivate(f, err, name)
}

func (p privateFS) Lock(name string) (io.Closer, error) {
	lock, err := p.FS.Lock(name)
	if err == nil {
		return lock, os.Chmod(name, privateMode)
	}
	if errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "held by current process") {
		return nil, fmt.Errorf("%w (%w)", ErrInUse, err)
	}
	return nil, err
}

func (p privateFS) Unwrap() vfs.FS { return p.FS }

// makePrivate removes the permissions of others. They could not access the file before either, because of
// the folder.
func makePrivate(f vfs.File, err error, name string) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(name, privateMode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
