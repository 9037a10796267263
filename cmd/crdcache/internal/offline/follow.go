package offline

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

// Files are seldom changed one at a time, and not in one step: reading waits until nothing has changed for a
// moment, though not for ever.
const (
	quiet   = 100 * time.Millisecond
	patient = time.Second
)

// pollInterval is how often files are looked at that the system does not watch.
const pollInterval = 2 * time.Second

// newWatcher asks the system for a watcher, of which there may be no more: Linux has 128 for each user.
var newWatcher = fsnotify.NewWatcher

// Follow keeps the objects as the files are, CustomResourceDefinitions included, until ctx ends. Directories
// that the system does not watch are looked at every two seconds, and reported. A snapshot does not change.
func (s *Source) Follow(ctx context.Context) {
	if s.recorded != nil {
		<-ctx.Done()
		return
	}
	l := lookout{source: s}
	watcher, err := newWatcher()
	if err != nil {
		l.lose(strings.Join(s.options.Paths, ", "), err)
	} else {
		defer watcher.Close()
		l.watcher = watcher
	}
	for l.catchUp(ctx) && l.await(ctx) {
	}
}

// lookout notices that files change.
type lookout struct {
	source  *Source
	watcher *fsnotify.Watcher // nil: the system gives none
	// blind says that not everything is watched, and told of what that was reported.
	blind bool
	told  map[string]bool
}

// lose reports what is not watched, once.
func (l *lookout) lose(what string, err error) {
	l.blind = true
	if l.told[what] || l.source.options.Report == nil {
		return
	}
	if l.told == nil {
		l.told = map[string]bool{}
	}
	l.told[what] = true
	l.source.options.Report(&manifest.Problem{File: what, Warning: true,
		Err: fmt.Errorf("changes are looked for every %v, for the system does not tell of them: %w",
			pollInterval, err)})
}

// catchUp reads what has changed and watches every directory, until both are so at the same time. It returns
// false when ctx ends.
func (l *lookout) catchUp(ctx context.Context) bool {
	for {
		if l.source.Refresh(ctx) != nil {
			return false
		}
		if l.watcher == nil || !l.watch(l.source.dirs()) {
			return true // nothing can have happened unseen
		}
	}
}

// watch watches directories, and reports whether there were new ones.
func (l *lookout) watch(dirs []string) (news bool) {
	watched := l.watcher.WatchList()
	for _, dir := range watched {
		if !slices.Contains(dirs, dir) {
			_ = l.watcher.Remove(dir) // it may have gone by itself
		}
	}
	l.blind = false
	for _, dir := range dirs {
		if slices.Contains(watched, dir) {
			continue
		}
		switch err := l.watcher.Add(dir); {
		case err == nil:
			news = true
		case isGone(dir):
			l.blind = true // it may come back
		default:
			l.lose(dir, err)
		}
	}
	return news
}

func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// await returns when something has changed and a quiet moment has come, or false when ctx ends.
func (l *lookout) await(ctx context.Context) bool {
	var calm, enough, poll <-chan time.Time
	var events chan fsnotify.Event
	var failures chan error
	if l.watcher != nil {
		events, failures = l.watcher.Events, l.watcher.Errors
	}
	if l.blind {
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
			// Events were lost. What they were about is found out by looking.
		case <-poll:
			return true
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
