package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run watches the files until ctx ends, and takes over each config that they hold. A folder that cannot be
// watched, as it is not there or may not be read, is tried again. It returns an error when the system has no
// means to watch files left; reading them now and then goes on working through Reload.
func (w *Watcher) Run(ctx context.Context) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("reload: watching files: %w", err)
	}
	defer notify.Close()
	watched := &folders{notify: notify}
	if err := watched.follow(w.options.Files); err != nil {
		return err
	}
	var poll <-chan time.Time
	if w.options.Poll > 0 {
		ticker := time.NewTicker(w.options.Poll)
		defer ticker.Stop()
		poll = ticker.C
	}
	// What happened between New and the first watch is looked at here.
	look := time.NewTimer(0)
	defer look.Stop()
	p := patience{quiet: w.options.Quiet, retry: w.options.Retry}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-notify.Events:
			// Whatever happens in the folders: the links on the way to a file may be anywhere in them.
			look.Reset(p.disturbed(time.Now()))
		case <-notify.Errors: // notifications were lost
			look.Reset(p.disturbed(time.Now()))
		case <-poll:
			look.Reset(0)
		case <-look.C:
			w.Reload(ctx)
			if err := watched.follow(w.options.Files); err != nil {
				return err
			}
			if again, ok := p.looked(w.wasRefused() || watched.missing); ok {
				look.Reset(again)
			}
		}
	}
}

// patience says how long to wait before files are looked at.
type patience struct {
	quiet, retry time.Duration
	// since is when something happened first that was not looked at yet; zero when nothing has.
	since time.Time
	// failures counts the looks in a row after which another is due.
	failures int
}

const (
	// mostQuiet is how many times as long as usual files wait in a folder in which something always happens.
	mostQuiet = 20
	// longestRetry bounds the time to another try.
	longestRetry = time.Minute
)

// disturbed says how long to wait when something happens: for quiet, but not for ever.
func (p *patience) disturbed(now time.Time) time.Duration {
	if p.since.IsZero() {
		p.since = now
	}
	return min(p.quiet, max(p.since.Add(mostQuiet*p.quiet).Sub(now), 0))
}

// looked says how long to wait after a look until the next, if one is due without anything happening.
func (p *patience) looked(failed bool) (time.Duration, bool) {
	p.since = time.Time{}
	if !failed {
		p.failures = 0
		return 0, false
	}
	wait := min(p.retry<<min(p.failures, 20), max(p.retry, longestRetry))
	p.failures++
	return wait, true
}

// folders are the folders that are watched: those in which the files are, and those of all links on the way.
// Folders are watched rather than files, because a file that is replaced is another one.
type folders struct {
	notify  *fsnotify.Watcher
	watched map[string]bool
	// missing is set when some cannot be watched now.
	missing bool
}

// follow watches the folders that the files are in now, and those alone.
func (f *folders) follow(files []string) error {
	wanted := map[string]bool{}
	for _, name := range files {
		for _, folder := range foldersOf(name) {
			wanted[folder] = true
		}
	}
	f.missing = false
	for folder := range wanted {
		// Adding a folder again does nothing, unless it is another one by now.
		if err := f.notify.Add(folder); err != nil {
			if exhausted(err) {
				return fmt.Errorf("reload: watching %s: %w", folder, err)
			}
			delete(wanted, folder)
			f.missing = true
		}
	}
	for folder := range f.watched {
		if !wanted[folder] {
			_ = f.notify.Remove(folder) // which fails when the folder is gone, and with it the watch
		}
	}
	f.watched = wanted
	return nil
}

// exhausted reports whether the system has no means to watch files left, rather than something against this
// one.
func exhausted(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// mostLinks bounds the links on the way to a file, which may go round in circles.
const mostLinks = 40

// foldersOf gives the folder of a file and of everything that the links on the way lead to.
func foldersOf(name string) []string {
	all := []string{filepath.Dir(name)}
	for range mostLinks {
		folder, base := filepath.Dir(name), filepath.Base(name)
		if target, err := os.Readlink(folder); err == nil {
			all = append(all, filepath.Dir(folder))
			name = filepath.Join(against(filepath.Dir(folder), target), base)
			all = append(all, filepath.Dir(name))
			continue
		}
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		name = against(folder, target)
		all = append(all, filepath.Dir(name))
	}
	return all
}

// against resolves the target of a link in a folder.
func against(folder, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(folder, target)
}
