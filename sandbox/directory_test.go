package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, err := isLocked(path); held || err != nil {
		t.Fatalf("isLocked() without a file = %v, %v, want false", held, err)
	}
	lock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(path); !errors.Is(err, errLocked) {
		t.Errorf("the second lockFile() = %v, want errLocked", err)
	}
	if held, err := isLocked(path); !held || err != nil {
		t.Errorf("isLocked() of a locked file = %v, %v, want true", held, err)
	}
	if got := readPID(path); got != os.Getpid() {
		t.Errorf("readPID() = %d, want %d: a refused lock must not change the file", got, os.Getpid())
	}
	lock.release()
	if held, err := isLocked(path); held || err != nil {
		t.Errorf("isLocked() after the release = %v, %v, want false", held, err)
	}
}
