package reload

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Run watches the files until ctx ends, and takes over each config that they hold. It returns an error when the
// system has no means to watch files left; reading them now and then goes on working through Reload.
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
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-notify.Events:
			// Whatever happens in the folders: the links on the way to a file may be anywhere in them.
			quiet.Reset(w.options.Quiet)
		case <-notify.Errors: // notifications were lost
			quiet.Reset(w.options.Quiet)
		case <-poll:
			quiet.Reset(0)
		case <-quiet.C:
			w.Reload(ctx)
			if err := watched.follow(w.options.Files); err != nil {
				return err
			}
		}
	}
}

// folders are the folders that are watched: those in which the files are, and those of all links on the way.
// Folders are watched rather than files, because a file that is replaced is another one.
type folders struct {
	notify  *fsnotify.Watcher
	watched map[string]bool
}

// follow watches the folders that the files are in now, and those alone.
func (f *folders) follow(files []string) error {
	wanted := map[string]bool{}
	for _, name := range files {
		for _, folder := range foldersOf(name) {
			wanted[folder] = true
		}
	}
	for folder := range wanted {
		// Adding a folder again does nothing, unless it is another one by now.
		if err := f.notify.Add(folder); err != nil {
			if errors.Is(err, os.ErrNotExist) {
				delete(wanted, folder) // it will be tried again
				continue
			}
			return fmt.Errorf("reload: watching %s: %w", folder, err)
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
