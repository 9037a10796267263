package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/crdcache/crdcache/internal/block"
)

const (
	privateMode = 0o600
	// newSuffix is added to the names of files that are not complete.
	newSuffix = ".new"
)

// folder is a locked folder.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder creates a folder if necessary, locks it, and removes files that are incomplete or were last
// saved before a time.
func (s *Store) openFolder(oldest time.Time) (*folder, error) {
	if err := s.options.disk("create", s.dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	if err := syncDir(filepath.Dir(s.dir)); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(s.dir, block.LockName))
	if err != nil {
		return nil, err
	}
	f := &folder{s.dir, lock}
	if err = f.removeOld(oldest); err == nil {
		err = s.options.disk("sync", s.dir)
	}
	if err == nil {
		err = syncDir(s.dir) // the last process may have ended before it
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return f, nil
}

func (f *folder) removeOld(oldest time.Time) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		info, err := entry.Info()
		switch {
		case strings.HasSuffix(name, block.LogSuffix+newSuffix),
			strings.HasSuffix(name, block.LogSuffix) && err == nil && info.ModTime().Before(oldest):
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

var errFolderRemoved = errors.New("the folder was removed or replaced while it was in use")

// check returns errFolderRemoved if the folder was removed or replaced, or an error of the disk.
func (f *folder) check() error {
	locked, err := f.lock.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(f.lock.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, current) {
		return fmt.Errorf("%s: %w", f.dir, errFolderRemoved)
	}
	return err
}
