package offline

import (
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReadOptions say what to read.
type ReadOptions struct {
	// Paths are files, directories, and Stdin.
	Paths []string
	// Flat leaves out the directories in directories.
	Flat bool
	// In is read for Stdin.
	In io.Reader
	// Warn is told of what was passed over. Default: nobody is.
	Warn func(*Problem)
}

// Take is given an object, and tells wrong what is wrong with it; that becomes a *Problem of the place where it stands.
type Take func(object *unstructured.Unstructured, wrong func(error)) error

// Read passes the objects of files to take, in order and as they stand there, whatever their kinds. It keeps none of
// them. An error of take, or the end of ctx, ends it and is all of its error; else that joins what could not be read,
// where a document is a *Problem, and did not keep the rest from being taken.
func Read(ctx context.Context, options ReadOptions, take Take) error {
	var failed []error
	l := newLoader(nil, func(p *Problem) {
		if !p.Warning {
			failed = append(failed, p)
		} else if options.Warn != nil {
			options.Warn(p)
		}
	})
	found, err := listFiles(ctx, options.Paths, false, options.Flat)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed = append(failed, err)
	found.tellBarren(l.report)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, f := range found.files {
		err := l.read(reading, f, options.In, func(e entry) {
			u, err := e.decode()
			if err != nil {
				l.problem(f, e.place, !f.named, err)
				return
			}
			if err := take(u, func(err error) { l.problem(f, e.place, false, err) }); err != nil {
				stop(err)
			}
		})
		if reading.Err() != nil {
			return context.Cause(reading)
		}
		failed = append(failed, err)
		l.summarize()
	}
	return errors.Join(failed...)
}
