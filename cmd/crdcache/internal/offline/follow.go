package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Files are seldom changed one at a time, and not in one step: reading waits until nothing has changed for a moment,
// though not for ever.
const (
	quiet   = 100 * time.Millisecond
	patient = time.Second
)

// Follow keeps the objects as the files are, CustomResourceDefinitions included, until ctx ends, which is no error.
// The error is that files cannot be watched.
func (s *Source) Follow(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching files: %w", err)
	}
	defer watcher.Close()
	for {
		if err := s.catchUp(ctx, watcher); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if !await(ctx, watcher) {
			return nil
		}
	}
}

// catchUp reads what has changed and watches every directory, until both are so at the same time.
func (s *Source) catchUp(ctx context.Context, watcher *fsnotify.Watcher) error {
	for {
		if err := s.Refresh(ctx); err != nil {
			return err
		}
		s.turn.Lock()
		dirs := s.turn.dirs
		s.turn.Unlock()
		watched := watcher.WatchList()
		news := false
		for _, dir := range dirs {
			if slices.Contains(watched, dir) {
				continue
			}
			if err := watcher.Add(dir); err != nil {
				if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
					continue
				}
				return fmt.Errorf("watching %s: %w", dir, err)
			}
			news = true
		}
		if !news {
			return nil // nothing can have happened unseen
		}
	}
}

// await returns when something has changed and a quiet moment has come, or false when ctx ends.
func await(ctx context.Context, watcher *fsnotify.Watcher) bool {
	var calm, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case event := <-watcher.Events:
			if event.Op == fsnotify.Chmod {
				continue
			}
		case <-watcher.Errors:
			// Events were lost. What they were about is found out by looking.
		case <-calm:
			return true
		case <-enough:
			return true
		}
		calm = time.After(quiet)
		if enough == nil {
			enough = time.After(patient)
		}
	}
}
