package controlplane

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock on a file. The kernel releases it when the holder dies, so it is never stale.
// The file stays: if it were deleted, two processes could lock two different files of the same name.
type fileLock struct{ file *os.File }

// lockFile acquires the lock at path without waiting, and writes its process ID into the file. It returns
// errLocked if another process holds the lock.
func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := file.Truncate(0); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		file.Close()
		return nil, err
	}
	return &fileLock{file: file}, nil
}

func (l *fileLock) release() { l.file.Close() }

// lockHeld reports whether another process holds the lock at path.
func lockHeld(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	// A shared lock, so that two concurrent probes do not see each other.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// lockHolder returns the process ID of the lock's holder, or 0.
func lockHolder(path string) int {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0
	}
	return pid
}
