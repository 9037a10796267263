//go:build linux || darwin

package store

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openSegment returns a file without a name, with size bytes reserved on the disk.
func openSegment(folder string, size int64) (*os.File, error) {
	file, err := os.CreateTemp(folder, "crdcache-*.segment")
	if err != nil {
		return nil, fmt.Errorf("create a file for objects: %w: set Storage.Directory or TMPDIR to a writable folder", err)
	}
	if err = os.Remove(file.Name()); err == nil && size > 0 {
		err = reserve(file, size)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("reserve %d MiB in %s: %w", size>>20, folder, err)
	}
	return file, nil
}

// reserve reserves disk space, unless too little would remain for other programs. File systems without
// reservations report a full disk when the file is written.
func reserve(file *os.File, size int64) error {
	connection, err := file.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := connection.Control(func(fd uintptr) {
		var disk unix.Statfs_t
		if err = unix.Fstatfs(int(fd), &disk); err != nil {
			return
		}
		block := int64(disk.Bsize)
		if free := int64(disk.Bavail)*block - size; free < min(maxFreeSpace, int64(disk.Blocks)*block/10) {
			err = fmt.Errorf("%w: %d MiB would remain free", unix.ENOSPC, max(free, 0)>>20)
			return
		}
		for err = preallocate(int(fd), size); err == unix.EINTR; err = preallocate(int(fd), size) {
		}
		if err == unix.EOPNOTSUPP || err == unix.ENOSYS || err == unix.EINVAL {
			err = nil
		}
	})
	if err == nil {
		err = controlErr
	}
	return err
}
