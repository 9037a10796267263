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

// Run watches the files until ctx ends and applies each new config. It retries folders that cannot be
// watched, for example because they do not exist. It returns an error if the system's resources for watching
// are exhausted; periodic calls of Reload still work then.
func (w *Watcher) Run(ctx context.Context) error {
	fsWatcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("reload: watching files: %w", err)
	}
	defer fsWatcher.Close()
	folders := &folderWatcher{fsWatcher: fsWatcher}
	if err := folders.setFiles(w.options.Files); err != nil {
		return err
	}
	var pollTicks <-chan time.Time
	if w.options.PollInterval > 0 {
		ticker := time.NewTicker(w.options.PollInterval)
		defer ticker.Stop()
		pollTicks = ticker.C
	}
	// The first read finds changes between New and the first watch.
	reloadTimer := time.NewTimer(0)
	defer reloadTimer.Stop()
	debouncer := debounce{quietPeriod: w.options.QuietPeriod, retryInterval: w.options.Retry}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-fsWatcher.Events:
			// any event in the folders can change a link on the way to a file
			reloadTimer.Reset(debouncer.delayAfterEvent(time.Now()))
		case <-fsWatcher.Errors: // events were lost
			reloadTimer.Reset(debouncer.delayAfterEvent(time.Now()))
		case <-pollTicks:
			reloadTimer.Reset(0)
		case <-reloadTimer.C:
			w.Reload(ctx)
			if err := folders.setFiles(w.options.Files); err != nil {
				return err
			}
			if delay, ok := debouncer.delayAfterRead(w.wasRejected() || folders.someUnwatched); ok {
				reloadTimer.Reset(delay)
			}
		}
	}
}

// debounce computes the delays before reads of the files.
type debounce struct {
	quietPeriod, retryInterval time.Duration
	// firstEvent is the time of the first event since the last read; zero without events.
	firstEvent time.Time
	// failures is the number of consecutive failed reads.
	failures int
}

const (
	// maxQuietPeriods is the maximum delay in a busy folder, in quiet periods.
	maxQuietPeriods = 20
	// maxRetry is the maximum retry interval.
	maxRetry = time.Minute
)

func (d *debounce) delayAfterEvent(now time.Time) time.Duration {
	if d.firstEvent.IsZero() {
		d.firstEvent = now
	}
	return min(d.quietPeriod, max(d.firstEvent.Add(maxQuietPeriods*d.quietPeriod).Sub(now), 0))
}

// delayAfterRead returns the delay until the next read, if the last one failed.
func (d *debounce) delayAfterRead(failed bool) (time.Duration, bool) {
	d.firstEvent = time.Time{}
	if !failed {
		d.failures = 0
		return 0, false
	}
	wait := min(d.retryInterval<<min(d.failures, 20), max(d.retryInterval, maxRetry))
	d.failures++
	return wait, true
}

// folderWatcher watches the folders of the files, and of all links on the way to them. A watch on a file
// would end when the file is replaced.
type folderWatcher struct {
	fsWatcher *fsnotify.Watcher
	// someUnwatched is set if some folders cannot be watched now.
	someUnwatched bool
}

// setFiles watches exactly the current folders of the files.
func (f *folderWatcher) setFiles(files []string) error {
	needed := map[string]bool{}
	for _, name := range files {
		for _, folder := range foldersOf(name) {
			needed[folder] = true
		}
	}
	f.someUnwatched = false
	for folder := range needed {
		// adding a folder again has no effect unless it was replaced
		if err := f.fsWatcher.Add(folder); err != nil {
			if isWatchLimitError(err) {
				return fmt.Errorf("reload: watching %s: %w", folder, err)
			}
			delete(needed, folder)
			f.someUnwatched = true
		}
	}
	for _, folder := range f.fsWatcher.WatchList() {
		if !needed[folder] {
			_ = f.fsWatcher.Remove(folder) // fails if the folder and its watch no longer exist
		}
	}
	return nil
}

// isWatchLimitError reports whether the system's resources for watching are exhausted.
func isWatchLimitError(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// maxLinks is the maximum number of links on the way to a file, which can be cyclic.
const maxLinks = 40

// foldersOf returns the folder of a file and of all links on the way.
func foldersOf(name string) []string {
	folders := []string{filepath.Dir(name)}
	for range maxLinks {
		folder, base := filepath.Dir(name), filepath.Base(name)
		if target, err := os.Readlink(folder); err == nil {
			folders = append(folders, filepath.Dir(folder))
			name = filepath.Join(resolveLink(filepath.Dir(folder), target), base)
			folders = append(folders, filepath.Dir(name))
			continue
		}
		target, err := os.Readlink(name)
		if err != nil {
			break
		}
		name = resolveLink(folder, target)
		folders = append(folders, filepath.Dir(name))
	}
	return folders
}

func resolveLink(folder, target string) string {
	if filepath.IsAbs(target) {
		return target
	}
	return filepath.Join(folder, target)
}
