package filesource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/crdcache/crdcache/internal/manifest"
)

// Editors change files in several steps. After a change, files are read after a pause of settleTime, at the
// latest after maxSettleTime.
const (
	settleTime    = 100 * time.Millisecond
	maxSettleTime = time.Second
)

const pollInterval = 2 * time.Second

// newWatcher is a variable for tests of its error: Linux allows 128 watchers per user.
var newWatcher = fsnotify.NewWatcher

// Follow updates the objects and types when files change, until ctx ends. Directories that the system cannot
// watch are polled every two seconds and reported. A snapshot does not change.
func (s *Source) Follow(ctx context.Context) {
	if s.snapshot != nil {
		<-ctx.Done()
		return
	}
	l := changeWatcher{source: s}
	watcher, err := newWatcher()
	if err != nil {
		l.reportUnwatched(s.pathNames(), err)
	} else {
		defer watcher.Close()
		l.watcher = watcher
	}
	for l.readChanges(ctx) && l.awaitChange(ctx) {
	}
}

type changeWatcher struct {
	source  *Source
	watcher *fsnotify.Watcher // nil if the system provides none
	// polling is set if some directories are not watched. reported has the paths for which this was
	// reported.
	polling  bool
	reported map[string]bool
}

func (l *changeWatcher) reportUnwatched(subject string, err error) {
	l.polling = true
	if l.reported[subject] || l.source.options.Report == nil {
		return
	}
	if l.reported == nil {
		l.reported = map[string]bool{}
	}
	l.reported[subject] = true
	l.source.options.Report(&manifest.Problem{File: subject, Warning: true,
		Err: fmt.Errorf("polling for changes every %v, because the system cannot watch the files: %w",
			pollInterval, err)})
}

// readChanges reads changed files and adds watches, until all directories are watched. It returns false when
// ctx ends.
func (l *changeWatcher) readChanges(ctx context.Context) bool {
	for {
		if l.source.Refresh(ctx) != nil {
			return false
		}
		if l.watcher == nil || !l.watch(l.source.dirs()) {
			return true // no change can have been missed
		}
	}
}

// watch updates the watched directories. It reports whether it added a directory.
func (l *changeWatcher) watch(dirs []string) (foundNew bool) {
	watched := l.watcher.WatchList()
	for _, dir := range watched {
		if !slices.Contains(dirs, dir) {
			_ = l.watcher.Remove(dir) // fails if the directory was deleted
		}
	}
	l.polling = false
	for _, dir := range dirs {
		if slices.Contains(watched, dir) {
			continue
		}
		switch err := l.watcher.Add(dir); {
		case err == nil:
			foundNew = true
		case isGone(dir):
			l.polling = true // the directory can be created again
		default:
			l.reportUnwatched(dir, err)
		}
	}
	return foundNew
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// awaitChange returns true after a change and a pause, or false when ctx ends.
func (l *changeWatcher) awaitChange(ctx context.Context) bool {
	var settled, maxWait, poll <-chan time.Time
	var events chan fsnotify.Event
	var failures chan error
	if l.watcher != nil {
		events, failures = l.watcher.Events, l.watcher.Errors
	}
	if l.polling {
		poll = time.After(pollInterval)
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case event := <-events:
			if event.Op == fsnotify.Chmod {
				continue
			}
		case <-failures:
			// Events were lost. The next read finds the changes.
		case <-poll:
			return true
		case <-settled:
			return true
		case <-maxWait:
			return true
		}
		settled = time.After(settleTime)
		if maxWait == nil {
			maxWait = time.After(maxSettleTime)
		}
	}
}
