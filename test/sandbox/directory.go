package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// directory is the absolute path of the folder with all files of a sandbox.
type directory string

func (d directory) path(name string) string { return filepath.Join(string(d), name) }

func (d directory) kubeconfigPath() string { return d.path("kubeconfig") }

// etcdURLPath is the path of a file with etcd's URL. The file exists while the sandbox runs.
func (d directory) etcdURLPath() string { return d.path("etcd.url") }

func (d directory) lockPath() string { return d.path("lock") }

// pidPath is the path of a file with a process ID. The watchdog ends these processes.
func (d directory) pidPath(name string) string { return d.path(name + ".pid") }

var errLocked = errors.New("locked by another process")

// fileLock is an advisory lock on a file. The kernel releases it when the holder dies. The file is never
// deleted, because two processes could then lock two different files of the same name.
type fileLock struct{ file *os.File }

// lockFile acquires the lock at path and writes the ID of this process into the file. It returns errLocked if
// another process holds the lock.
func lockFile(path string) (*fileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err == nil {
		err = file.Truncate(0)
	}
	if err == nil {
		_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &fileLock{file: file}, nil
}

func (l *fileLock) release() { l.file.Close() }

// isLocked reports whether another process holds the lock at path.
func isLocked(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	// With shared locks, concurrent calls of isLocked do not exclude each other.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// readPID returns the process ID in a file, or 0.
func readPID(path string) int {
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

// writeFile replaces a file atomically.
func writeFile(path string, data []byte) error {
	if err := os.WriteFile(path+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
