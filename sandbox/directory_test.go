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
		t.Fatalf("lockHeld() without a file = %v, %v, want false", held, err)
	}
	lock, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockFile(path); !errors.Is(err, errLocked) {
		t.Errorf("second lock: %v, want errLocked", err)
	}
	if held, err := isLocked(path); !held || err != nil {
		t.Errorf("held %v, error %v, want true", held, err)
	}
	if got := readPID(path); got != os.Getpid() {
		t.Errorf("holder %d, want %d: a refused attempt must not change it", got, os.Getpid())
	}
	lock.release()
	if held, err := isLocked(path); held || err != nil {
		t.Errorf("lockHeld() after the release = %v, %v, want false", held, err)
	}
}
