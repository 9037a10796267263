package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stdin is the path of standard input. In an fs.FS it is the name of a file.
const Stdin = "-"

// File is a file to read, identified by its path.
type File struct {
	Path string
	// Argument is the index of the given path at or below which the file is. NamedAsArgument is true if
	// that path is the file itself.
	Argument        int
	NamedAsArgument bool
	Stamp           Stamp
	// ReadCount is the number of times that it was read; HadErrors is set if the last time had errors.
	ReadCount int
	HadErrors bool

	files fs.FS // nil means the operating system's
}

// Stamp is compared to detect changes of a file.
type Stamp struct {
	Size    int64
	Changed time.Time
	info    fs.FileInfo
}

// Same returns false for a file that another has replaced, also if a coarse clock gave both the same time.
func (s Stamp) Same(t Stamp) bool {
	return s.Size == t.Size && s.Changed.Equal(t.Changed) && (s.info == nil || os.SameFile(s.info, t.info))
}

// Name returns the name of the file in problems.
func (f *File) Name() string {
	if f.Path == Stdin && f.files == nil {
		return "stdin"
	}
	return f.Path
}

// Open opens a file, or returns standard input. Reading a special file, such as a named pipe without a
// writer, may block; it ends with ctx.
func (f *File) Open(ctx context.Context, stdin io.Reader) (io.ReadCloser, error) {
	if f.files != nil {
		return f.files.Open(f.Path)
	}
	open := func() (io.Reader, error) { return os.Open(f.Path) }
	if f.Path == Stdin {
		if stdin == nil {
			return nil, errors.New("standard input is not available")
		}
		open = func() (io.Reader, error) { return stdin, nil }
	} else if info, err := os.Stat(f.Path); err != nil || info.Mode().IsRegular() {
		return os.Open(f.Path)
	}
	reader, writer := io.Pipe()
	// Ends at the end of the input, when data arrives after reader was closed, or with the process.
	go func() {
		r, err := open()
		if err == nil {
			_, err = io.Copy(writer, r)
		}
		if file, ok := r.(*os.File); ok && f.Path != Stdin {
			err = errors.Join(err, file.Close())
		}
		_ = writer.CloseWithError(err) // never fails
	}()
	stop := context.AfterFunc(ctx, func() { _ = writer.CloseWithError(ctx.Err()) })
	return cancelablePipe{reader, stop}, nil
}

type cancelablePipe struct {
	*io.PipeReader
	stop func() bool
}

func (s cancelablePipe) Close() error {
	s.stop()
	return s.PipeReader.Close()
}

// Location returns the file, with the member of an archive, and the line of a position.
func (f *File) Location(p Position) string { return location(f.Name(), p) }

func location(file string, p Position) string {
	if p.Member != "" {
		file += "/" + p.Member
	}
	if p.Line > 0 {
		file += fmt.Sprintf(":%d", p.Line)
	}
	return file
}

// MayHaveOthers reports whether a file can have documents that are no Kubernetes objects. A named file should
// have none, but a directory or an archive may contain any files.
func (f *File) MayHaveOthers(p Position) bool { return !f.NamedAsArgument || p.Member != "" }

// Compare orders files by argument, then by path.
func (f *File) Compare(other *File) int {
	return cmp.Or(cmp.Compare(f.Argument, other.Argument), cmp.Compare(f.Path, other.Path))
}

// Listing is the result of List.
type Listing struct {
	// Files are in reading order, without duplicates.
	Files []*File
	// Empty are the given directories without files. Skipped are the numbers of files in directories that
	// are not read because of their names, and of pipes and links to directories.
	Empty   []string
	Skipped map[string]int
}

// extensions are the extensions of files that are read in directories and archives.
var extensions = slices.Concat([]string{".yaml", ".yml", ".json", ".jsonl"}, archiveExtensions)

// otherNames describes the files that are not read.
var otherNames = "files with other names than " + strings.Join(extensions, ", ")

// hasExtension reports whether a name has one of the extensions, before a compression's, if any.
func hasExtension(name string, extensions []string) bool {
	ending := filepath.Ext(name)
	if ending == ".gz" || ending == ".zst" {
		ending = filepath.Ext(strings.TrimSuffix(name, ending))
	}
	return slices.Contains(extensions, ending)
}

// isRead reports whether a file is an archive or, with wanted, is wanted, and otherwise is a manifest.
func isRead(path string, wanted func(path string) bool) bool {
	if wanted == nil {
		return hasExtension(path, extensions)
	}
	return hasExtension(path, archiveExtensions) || wanted(path)
}

// Report warns of given directories without files, and of files that are not read.
func (l Listing) Report(report func(*Problem)) {
	for _, dir := range l.Empty {
		report(&Problem{File: dir, Warning: true, Err: fmt.Errorf("the directory has no YAML or JSON files or archives "+
			"(%s; also with .gz or .zst)", strings.Join(extensions, ", "))})
	}
	for _, dir := range slices.Sorted(maps.Keys(l.Skipped)) {
		report(&Problem{File: dir, Warning: true, Err: fmt.Errorf("%w: %d %s, or pipes, or links to directories",
			ErrNotRead, l.Skipped[dir], otherNames)})
	}
}

// ListOptions configure List.
type ListOptions struct {
	// FS is the file system of the paths. Nil means the operating system's.
	FS fs.FS
	// Wanted selects files in directories by their paths, next to archives. Default: manifests.
	Wanted func(path string) bool
}

// List finds all files below the paths.
func List(ctx context.Context, paths []string, options ListOptions) (l Listing, err error) {
	visited := map[string]bool{}
	l.Skipped = map[string]int{}
	var problems []error
	for i, path := range paths {
		switch {
		case path == "":
			problems = append(problems,
				errors.New("a path is empty: is it a variable that is not set? Write . for the current directory"))
			continue
		case path == Stdin && options.FS == nil:
			if !visited[path] {
				visited[path] = true
				l.Files = append(l.Files, &File{Path: Stdin, Argument: i, NamedAsArgument: true})
			}
			continue
		}
		if path = filepath.Clean(path); options.FS != nil {
			path = filepath.ToSlash(path)
		}
		isEmpty := true
		err := options.walk(ctx, path, func(at string, info fs.FileInfo) {
			if info == nil {
				l.Skipped[path]++
				return
			}
			isEmpty = false
			if !visited[at] {
				visited[at] = true
				l.Files = append(l.Files, &File{Path: at, Argument: i, NamedAsArgument: at == path,
					Stamp: Stamp{info.Size(), info.ModTime(), info}, files: options.FS})
			}
		})
		switch {
		case err != nil:
			problems = append(problems, err)
		case isEmpty:
			l.Empty = append(l.Empty, path)
			delete(l.Skipped, path)
		}
	}
	return l, errors.Join(problems...)
}

// walk calls add for the files at or below path, without info if they have other names.
func (o ListOptions) walk(ctx context.Context, path string, add func(string, fs.FileInfo)) error {
	stat, walkDir := os.Stat, filepath.WalkDir
	root := path + string(filepath.Separator) // follows a link to a directory
	if o.FS != nil {
		stat = func(at string) (fs.FileInfo, error) { return fs.Stat(o.FS, at) }
		walkDir = func(root string, f fs.WalkDirFunc) error { return fs.WalkDir(o.FS, root, f) }
		root = path
	}
	info, err := stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		add(path, info)
		return nil
	}
	err = walkDir(root, func(at string, entry fs.DirEntry, err error) error {
		if at == root {
			at = path
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && at != path:
			return nil // removed in the meantime
		case err != nil:
			return err
		case at != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !isRead(at, o.Wanted):
			add(at, nil)
			return nil
		}
		info, err := stat(at)
		if err != nil && entry.Type() == fs.ModeSymlink {
			info, err = entry.Info() // Read reports the broken link
		}
		switch {
		case err != nil: // removed in the meantime
		case info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink:
			add(at, info)
		default:
			add(at, nil)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list files below %s: %w", path, err)
	}
	return nil
}
