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
	"sync/atomic"
)

// Reader reads files and reports problems. It must not be used concurrently.
type Reader struct {
	report func(*Problem)
	// OnNote is called for each note. Optional.
	OnNote func(*File, Position, *Note)
	// Received counts the bytes that are read. Optional.
	Received *atomic.Int64
	// tallies are the counts since the last summary.
	tallies map[*File]*problemCounts
	// firstIgnored is the first document that was ignored since the last summary.
	firstIgnored *Problem
	ignored      int
}

type problemCounts struct{ all, moreErrors, moreWarnings int }

// NewReader returns a Reader that calls report for each problem.
func NewReader(report func(*Problem)) *Reader {
	return &Reader{report: report, tallies: map[*File]*problemCounts{}}
}

// Read reads a file and passes each object, also a deleted one of a recording, to onObject. It reports
// unreadable documents, and files that were removed after their directory was listed. It returns errors of
// opening or reading.
func (r *Reader) Read(ctx context.Context, f *File, stdin io.Reader, onObject func(Entry)) error {
	in, err := f.Open(ctx, stdin)
	if errors.Is(err, fs.ErrNotExist) && !f.NamedAsArgument {
		if info, err := os.Lstat(f.Path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			r.Problem(f, Position{}, false, errors.New("the symbolic link is broken: its target does not exist"))
		} else {
			r.Problem(f, Position{}, true, errors.New("the file was removed before it could be read"))
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
	err = read(ctx, in, f.Path, r.Received, func(e Entry) bool {
		empty = false
		var note *Note
		switch {
		case errors.As(e.Err, &note):
			if r.OnNote != nil {
				r.OnNote(f, e.Position, note)
			}
		case e.Err != nil:
			if errors.Is(e.Err, ErrNotObject) {
				r.NotObject(f, e.Position, e.Err)
			} else {
				r.Problem(f, e.Position, errors.Is(e.Err, ErrNotRead), e.Err)
			}
		default:
			onObject(e)
		}
		return ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("read %s: %w", f.Name(), ctx.Err())
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrTruncated),
		err != nil && (!empty || !f.NamedAsArgument): // the rest is shown
		r.Problem(f, Position{}, false, err)
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", f.Name(), err)
	case empty && f.NamedAsArgument:
		r.Problem(f, Position{}, true, errors.New("the file is empty"))
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

// NotObject reports a document that is no Kubernetes object. A named file should have none. Others are
// ignored, and Summarize counts them.
func (r *Reader) NotObject(f *File, p Position, err error) {
	if !f.MayHaveOthers(p) {
		r.Problem(f, p, false, err)
		return
	}
	if r.ignored++; r.ignored == 1 {
		r.firstIgnored = &Problem{File: f.Name(), Position: p, Warning: true, Err: fmt.Errorf("ignored: %w", err)}
	}
}

// Summarize reports the number of further problems since the last call.
func (r *Reader) Summarize() {
	if r.ignored > 1 {
		r.firstIgnored.Err = fmt.Errorf("%w; so are %d other documents", r.firstIgnored.Err, r.ignored-1)
	}
	if r.ignored > 0 {
		r.report(r.firstIgnored)
	}
	r.ignored = 0
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
