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
)

// Reader reads files and reports what is wrong with them. It is for one goroutine.
type Reader struct {
	report func(*Problem)
	// tallies are those since the last summary.
	tallies map[*File]*tally
}

// tally counts the problems of a file.
type tally struct{ all, untoldErrors, untoldWarnings int }

// NewReader returns a Reader that reports to a function.
func NewReader(report func(*Problem)) *Reader {
	return &Reader{report: report, tallies: map[*File]*tally{}}
}

var (
	// errNothing is the warning for an empty file that was named by the caller.
	errNothing = errors.New("there is nothing in it")
	errLink    = errors.New("the symbolic link is broken: its target does not exist")
	errGone    = errors.New("it was removed before it could be read")
)

// Read reads a file and passes each object on. What cannot be read is reported, as is a file of a directory
// that has gone in the meantime. The error is that of opening or reading.
func (r *Reader) Read(ctx context.Context, f *File, stdin io.Reader, take func(Entry)) error {
	in, err := f.Open(ctx, stdin)
	if errors.Is(err, fs.ErrNotExist) && !f.Named {
		if info, err := os.Lstat(f.Path); err == nil && info.Mode().Type() == fs.ModeSymlink {
			r.Problem(f, Place{}, false, errLink)
		} else {
			r.Problem(f, Place{}, true, errGone)
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	f.Times++
	f.Broken = false
	empty := true
	err = Read(ctx, in, func(e Entry) bool {
		empty = false
		if e.Err != nil {
			// In a folder there may be files of all sorts; a file that is named is meant.
			foreign := errors.Is(e.Err, ErrNotObject) && !f.Named
			if foreign {
				e.Err = fmt.Errorf("passed over: %w", e.Err)
			}
			r.Problem(f, e.Place, foreign, e.Err)
		} else {
			take(e)
		}
		return ctx.Err() == nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("reading %s: %w", f.Name(), ctx.Err())
	case errors.Is(err, ErrTooLarge):
		r.Problem(f, Place{}, false, err)
		return nil
	case err != nil:
		return fmt.Errorf("reading %s: %w", f.Name(), err)
	case empty && f.Named:
		r.Problem(f, Place{}, true, errNothing)
	}
	return nil
}

// maxProblems is how many problems of a file are told one by one: a file of something else can have one on
// every line.
const maxProblems = 20

// Problem reports what is wrong at a place of a file.
func (r *Reader) Problem(f *File, p Place, warning bool, err error) {
	f.Broken = f.Broken || !warning
	count := r.tallies[f]
	if count == nil {
		count = &tally{}
		r.tallies[f] = count
	}
	switch count.all++; {
	case count.all <= maxProblems:
		r.report(&Problem{File: f.Name(), Place: p, Warning: warning, Err: err})
	case warning:
		count.untoldWarnings++
	default:
		count.untoldErrors++
	}
}

// Summarize reports how many problems there were since the last time beside those that were reported.
func (r *Reader) Summarize() {
	for _, f := range slices.SortedFunc(maps.Keys(r.tallies), (*File).Compare) {
		count := r.tallies[f]
		if count.untoldErrors > 0 {
			r.report(&Problem{File: f.Name(), Err: fmt.Errorf("there are %d errors more",
				count.untoldErrors)})
		}
		if count.untoldWarnings > 0 {
			r.report(&Problem{File: f.Name(), Warning: true, Err: fmt.Errorf("there are %d warnings more",
				count.untoldWarnings)})
		}
	}
	clear(r.tallies)
}
