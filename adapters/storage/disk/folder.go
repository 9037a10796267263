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

// openFolder creates the folder if necessary, locks it, and removes files that are incomplete or were last
// saved before a time. It returns the lock.
func (s *Store) openFolder(oldest time.Time) (*os.File, error) {
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
	if err = s.removeOldFiles(oldest); err == nil {
		err = s.options.disk("sync", s.dir)
	}
	if err == nil {
		err = syncDir(s.dir) // the last process may have ended before it
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func (s *Store) removeOldFiles(oldest time.Time) error {
	entries, err := os.ReadDir(s.dir)
	for _, entry := range entries {
		name := entry.Name()
		info, infoErr := entry.Info()
		if strings.HasSuffix(name, block.LogSuffix+newSuffix) ||
			strings.HasSuffix(name, block.LogSuffix) && infoErr == nil && info.ModTime().Before(oldest) {
			if removeErr := os.Remove(filepath.Join(s.dir, name)); !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

var errFolderRemoved = errors.New("the folder was removed or replaced while it was in use")

// checkFolder returns errFolderRemoved if the folder was removed or replaced, or an error of the disk.
func (s *Store) checkFolder() error {
	locked, err := s.lock.Stat()
	if err != nil {
		return err
	}
	current, err := os.Stat(s.lock.Name())
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(locked, current) {
		return fmt.Errorf("%s: %w", s.dir, errFolderRemoved)
	}
	return err
}
