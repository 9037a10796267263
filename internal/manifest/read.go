package manifest

import (
	"context"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ReadOptions configure ReadFiles.
type ReadOptions struct {
	// Paths are files, directories, and Stdin.
	Paths []string
	// Flat ignores subdirectories.
	Flat bool
	// In is read for Stdin.
	In io.Reader
	// Warn is called for every file and document that is skipped. Optional.
	Warn func(*Problem)
}

// ObjectHandler receives an object. It passes errors of the object to wrong, which adds the position of the
// object to them.
type ObjectHandler func(object *unstructured.Unstructured, wrong func(error)) error

// ReadFiles passes the objects of files to take, in order. It stops at the first error of take and when ctx
// ends, and returns that error. Otherwise it reads as much as possible, and returns the joined errors: a
// *Problem for each document.
func ReadFiles(ctx context.Context, options ReadOptions, take ObjectHandler) error {
	var failed []error
	r := NewReader(func(p *Problem) {
		if !p.Warning {
			failed = append(failed, p)
		} else if options.Warn != nil {
			options.Warn(p)
		}
	})
	found, err := List(ctx, options.Paths, ListOptions{Flat: options.Flat})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	failed = append(failed, err)
	found.ReportEmpty(r.report)
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for _, f := range found.Files {
		err := r.Read(reading, f, options.In, func(e Entry) {
			u, err := e.Decode()
			if err != nil {
				r.Problem(f, e.Position, !f.Named, err)
				return
			}
			if err := take(u, func(err error) { r.Problem(f, e.Position, false, err) }); err != nil {
				stop(err)
			}
		})
		if reading.Err() != nil {
			return context.Cause(reading)
		}
		failed = append(failed, err)
		r.Summarize()
	}
	return errors.Join(failed...)
}
