package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// file is one that is read. It is known by its path.
type file struct {
	path string
	// argument is which of the given paths led here; named is true when it is that path.
	argument int
	named    bool
	stamp    stamp
	// read counts how often it was read; broken is whether something was wrong then.
	read   int
	broken bool
}

// stamp tells whether a file may have changed.
type stamp struct {
	size    int64
	changed time.Time
}

// name is what the file is called in problems.
func (f *file) name() string {
	if f.path == Stdin {
		return "stdin"
	}
	return f.path
}

// open opens a file, or gives standard input. Of what is no regular file reading can take for ever, as of a pipe that
// nobody writes to; it ends with ctx.
func (f *file) open(ctx context.Context, stdin io.Reader) (io.ReadCloser, error) {
	open := func() (io.Reader, error) { return os.Open(f.path) }
	if f.path == Stdin {
		if stdin == nil {
			return nil, errors.New("there is no standard input")
		}
		open = func() (io.Reader, error) { return stdin, nil }
	} else if info, err := os.Stat(f.path); err != nil || info.Mode().IsRegular() {
		return os.Open(f.path)
	}
	out, in := io.Pipe()
	// It ends with what it reads, or when out is closed and something comes; else with the process.
	go func() {
		r, err := open()
		if err == nil {
			_, err = io.Copy(in, r)
		}
		if file, ok := r.(*os.File); ok && f.path != Stdin {
			err = errors.Join(err, file.Close())
		}
		_ = in.CloseWithError(err) // never fails
	}()
	stop := context.AfterFunc(ctx, func() { _ = in.CloseWithError(ctx.Err()) })
	return stoppable{out, stop}, nil
}

// stoppable is a pipe that ends with a context.
type stoppable struct {
	*io.PipeReader
	stop func() bool
}

// Close implements io.Closer.
func (s stoppable) Close() error {
	s.stop()
	return s.PipeReader.Close()
}

// compare orders files as they are read: by argument, then by path.
func (f *file) compare(other *file) int {
	return cmp.Or(cmp.Compare(f.argument, other.argument), cmp.Compare(f.path, other.path))
}

// listing is what there is to read.
type listing struct {
	// files are in the order that they are read in. A path that is given twice, or lies below another one, counts once.
	files []*file
	// dirs are the directories that have them.
	dirs []string
	// barren are the paths of directories that have none.
	barren []string
}

var (
	errNoPath  = errors.New("a path is empty: is it a variable that is not set? Write . for the current directory")
	errNoFiles = errors.New("no .yaml, .yml or .json file is in it")
)

// tellBarren warns of directories that have no files: those that are named are meant to.
func (l listing) tellBarren(report func(*Problem)) {
	for _, dir := range l.barren {
		report(&Problem{File: dir, Warning: true, Err: errNoFiles})
	}
}

// listFiles finds all files below the paths. A path that does not exist is an error, unless it may be gone. Where
// flat is set, directories in directories are left out.
func listFiles(ctx context.Context, paths []string, mayBeGone, flat bool) (l listing, err error) {
	seen := map[string]bool{}
	var problems []error
	for i, path := range paths {
		switch path {
		case "":
			problems = append(problems, errNoPath)
			continue
		case Stdin:
			if !seen[path] {
				seen[path] = true
				l.files = append(l.files, &file{path: Stdin, argument: i, named: true})
			}
			continue
		}
		path = filepath.Clean(path)
		barren := true
		dirs, err := walk(ctx, path, flat, func(at string, info fs.FileInfo) {
			barren = false
			if !seen[at] {
				seen[at] = true
				l.files = append(l.files, &file{path: at, argument: i, named: at == path, stamp: stamp{info.Size(), info.ModTime()}})
			}
		})
		l.dirs = append(l.dirs, dirs...)
		switch {
		case err != nil && !(mayBeGone && errors.Is(err, fs.ErrNotExist)):
			problems = append(problems, err)
		case barren && err == nil:
			l.barren = append(l.barren, path)
		}
	}
	slices.Sort(l.dirs)
	l.dirs = slices.Compact(l.dirs)
	return l, errors.Join(problems...)
}

// walk calls add for the files at or below path and returns the directories that it looked into.
func walk(ctx context.Context, path string, flat bool, add func(string, fs.FileInfo)) (dirs []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return []string{filepath.Dir(path)}, err // where it may come back
	}
	if !info.IsDir() {
		add(path, info)
		return []string{filepath.Dir(path)}, nil
	}
	root := path + string(filepath.Separator) // a link to a directory is one
	err = filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if at == root {
			at = path
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && at != path:
			return nil // it went while we looked
		case err != nil:
			return err
		case at != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() && flat && at != path:
			return fs.SkipDir
		case entry.IsDir():
			dirs = append(dirs, at)
			return nil
		case !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(at)):
			return nil
		}
		// The target of a link counts; a link to nothing does not.
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() {
			add(at, info)
		}
		return nil
	})
	if err != nil {
		return dirs, fmt.Errorf("looking for files below %s: %w", path, err)
	}
	return dirs, nil
}

// isGone reports whether nothing is at the path any more.
func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
