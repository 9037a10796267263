package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reader reads files and reports problems. It must not be used concurrently.
type Reader struct {
	report func(*Problem)
	// tallies are the counts since the last summary.
	tallies map[*File]*problemCounts
}

type problemCounts struct{ all, moreErrors, moreWarnings int }

// NewReader returns a Reader that calls report for each problem.
func NewReader(report func(*Problem)) *Reader {
	return &Reader{report: report, tallies: map[*File]*problemCounts{}}
}

var (
	errEmptyFile   = errors.New("the file is empty")
	errBrokenLink  = errors.New("the symbolic link is broken: its target does not exist")
	errFileRemoved = errors.New("the file was removed before it could be read")
)

// Read reads a file and passes each object to onObject. It reports unreadable documents, and files that
// were removed after their directory was listed. It returns errors of opening or reading.
func (r *Reader) Read(ctx context.Context, f *File, stdin io.Reader, onObject func(Entry)) error {
	in, err := f.Open(ctx, stdin)
	if errors.Is(err, fs.ErrNotExist) && !f.NamedAsArgument {
		if info, err := os.Lstat(f.Path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			r.Problem(f, Position{}, false, errBrokenLink)
		} else {
			r.Problem(f, Position{}, true, errFileRemoved)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	f.ReadCount++
	f.HadErrors = false
	empty := true
	err = Read(ctx, in, func(e Entry) bool {
		empty = false
		if e.Err != nil {
			ignorable := errors.Is(e.Err, ErrNotObject) && f.MayHaveOthers(e.Position)
			if ignorable {
				e.Err = fmt.Errorf("ignored: %w", e.Err)
			}
			r.Problem(f, e.Position, ignorable || errors.Is(e.Err, ErrNotRead), e.Err)
		} else {
			onObject(e)
		}
		return ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("read %s: %w", f.Name(), ctx.Err())
	case errors.Is(err, ErrTooLarge):
		r.Problem(f, Position{}, false, err)
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", f.Name(), err)
	case empty && f.NamedAsArgument:
		r.Problem(f, Position{}, true, errEmptyFile)
	}
	return nil
}

// Problem is an error or a warning about a file.
type Problem struct {
	// File is the path, or "stdin".
	File string
	Position
	// Warning is true if a guess was made or something was ignored, but nothing is lost.
	Warning bool
	Err     error
}

// Error returns the position and the error.
func (p *Problem) Error() string {
	location := location(p.File, p.Position)
	if p.Document > 0 {
		location += fmt.Sprintf(": document %d", p.Document)
	}
	if p.Item > 0 {
		location += fmt.Sprintf(", item %d", p.Item)
	}
	return fmt.Sprintf("%s: %v", location, p.Err)
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// maxProblems is the number of problems of a file that are reported individually.
const maxProblems = 20

// Problem reports a problem at a place of a file.
func (r *Reader) Problem(f *File, p Position, warning bool, err error) {
	f.HadErrors = f.HadErrors || !warning
	count := r.tallies[f]
	if count == nil {
		count = &problemCounts{}
		r.tallies[f] = count
	}
	switch count.all++; {
	case count.all <= maxProblems:
		r.report(&Problem{File: f.Name(), Position: p, Warning: warning, Err: err})
	case warning:
		count.moreWarnings++
	default:
		count.moreErrors++
	}
}

// Summarize reports the number of further problems since the last call.
func (r *Reader) Summarize() {
	for _, f := range slices.SortedFunc(maps.Keys(r.tallies), (*File).Compare) {
		count := r.tallies[f]
		if count.moreErrors > 0 {
			r.report(&Problem{File: f.Name(), Err: fmt.Errorf("%d more errors", count.moreErrors)})
		}
		if count.moreWarnings > 0 {
			r.report(&Problem{File: f.Name(), Warning: true, Err: fmt.Errorf("%d more warnings",
				count.moreWarnings)})
		}
	}
	clear(r.tallies)
}

// ReadOptions configure ReadFiles.
type ReadOptions struct {
	// Paths are files, directories, and Stdin.
	Paths []string
	// In is read for Stdin.
	In io.Reader
	// Warn is called for every file and document that is skipped. Optional.
	Warn func(*Problem)
}

// ObjectHandler receives an object. It passes errors of the object to reportProblem, which adds the
// position of the object.
type ObjectHandler func(object *unstructured.Unstructured, reportProblem func(error)) error

// ReadFiles passes the objects of files to handle, in order. It stops at the first error of handle or
// when ctx ends, and returns that error. Otherwise it reads as much as possible, and returns the joined
// errors: a *Problem for each document.
func ReadFiles(ctx context.Context, options ReadOptions, handle ObjectHandler) error {
	var errs []error
	r := NewReader(func(p *Problem) {
		if !p.Warning {
			errs = append(errs, p)
		} else if options.Warn != nil {
			options.Warn(p)
		}
	})
	listing, err := List(ctx, options.Paths, ListOptions{})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	errs = append(errs, err)
	listing.ReportEmpty(r.report)
	readCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, f := range listing.Files {
		err := r.Read(readCtx, f, options.In, func(e Entry) {
			u, err := e.Decode()
			if err != nil {
				r.Problem(f, e.Position, f.MayHaveOthers(e.Position), err)
				return
			}
			if err := handle(u, func(err error) { r.Problem(f, e.Position, false, err) }); err != nil {
				cancel(err)
			}
		})
		if readCtx.Err() != nil {
			return context.Cause(readCtx)
		}
		errs = append(errs, err)
		r.Summarize()
	}
	return errors.Join(errs...)
}
