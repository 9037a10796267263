package filesource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/crdcache/crdcache/internal/manifest"
)

// Editors change several files in several steps. Reading waits for a pause of settleTime, but at most
// maxSettleTime.
const (
	settleTime    = 100 * time.Millisecond
	maxSettleTime = time.Second
)

// pollInterval is the polling interval for files that the system does not watch.
const pollInterval = 2 * time.Second

// newWatcher can fail: Linux allows 128 watchers per user.
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
		l.reportUnwatched(strings.Join(s.options.Paths, ", "), err)
	} else {
		defer watcher.Close()
		l.watcher = watcher
	}
	for l.readChanges(ctx) && l.await(ctx) {
	}
}

// changeWatcher waits for changes of files.
type changeWatcher struct {
	source  *Source
	watcher *fsnotify.Watcher // nil if the system provides none
	// polling is set if some directories are not watched. reported has the directories that were reported.
	polling  bool
	reported map[string]bool
}

// reportUnwatched reports once that a path is polled.
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

// readChanges reads changed files and adds watches until no directory is new. It returns false when ctx ends.
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

// watch updates the watched directories and reports whether there were new ones.
func (l *changeWatcher) watch(dirs []string) (newFolders bool) {
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
			newFolders = true
		case isGone(dir):
			l.polling = true // the directory can be created again
		default:
			l.reportUnwatched(dir, err)
		}
	}
	return newFolders
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// await returns true after a change and a pause, or false when ctx ends.
func (l *changeWatcher) await(ctx context.Context) bool {
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
