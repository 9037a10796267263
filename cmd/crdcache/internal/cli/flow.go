package cli

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// flow prints the objects of one type page by page into a pipe, whose reader may want no more than the first ones.
type flow struct {
	*session.Reader
	style  print.Style
	silent bool // of nothing
	// chosen, if set, says which objects are printed.
	chosen func(*unstructured.Unstructured) bool
}

// possible reports whether objects can be printed before all of them have been read.
func (f flow) possible(types *session.Types) bool {
	return len(types.Resources) == 1 && !f.Target.Offline() && f.style.Format.Flows() && print.IsPipe(f.Out)
}

// run prints the objects. It reports false, having printed nothing, where there is no first page: a sync tries again, and
// knows what to say.
func (f flow) run(ctx, waiting context.Context, types *session.Types) (done bool, err error) {
	done, err = f.print(ctx, waiting, types)
	if errors.Is(err, print.ErrHungUp) {
		err = print.WriteHungUp(f.Out)
	}
	return done, err
}

func (f flow) print(ctx, waiting context.Context, types *session.Types) (done bool, err error) {
	options, err := types.Show(f.style)
	if err != nil {
		return true, err
	}
	options.Silent = f.silent
	client, rows, err := f.rows(waiting, types, options.Loader)
	if err != nil {
		return f.tryAgain(waiting, types, "waiting for the columns of the table", err)
	}
	ctx, stop := print.WhileRead(ctx, f.Out)
	defer stop()
	var out *print.Flow
	for objects, err := range types.Pages(ctx, waiting, client) {
		switch {
		case ctx.Err() != nil:
			return true, context.Cause(ctx)
		case err != nil && out == nil:
			return f.tryAgain(waiting, types, "waiting for the first page of the list", err)
		case err != nil:
			return true, f.rest(ctx, types, out, err)
		}
		if out == nil {
			if out, err = options.Flow(types.Resources[0], rows()); err != nil {
				return true, err
			}
			out.Chosen = f.chosen
		}
		if err := out.Page(objects); err != nil {
			return true, err
		}
	}
	if out == nil {
		return true, context.Cause(ctx)
	}
	return true, out.Close()
}

// tryAgain leaves what failed to a sync, unless the time for waiting is up: then the error names what was waited for.
func (f flow) tryAgain(waiting context.Context, types *session.Types, wait string, err error) (done bool, _ error) {
	if waiting.Err() == nil {
		return false, nil
	}
	current := status.Status{
		GVR: types.Resources[0].GVR, State: status.Syncing, Message: wait + ": " + print.Line(err.Error()), LastError: err,
	}
	return true, &dynamicinformer.NotSyncedError{Missing: []status.Status{current}, Cause: context.Cause(waiting)}
}

// rows returns the client that lists what is printed, and what gives the rows once something is listed.
func (f flow) rows(ctx context.Context, types *session.Types, loader *print.RowLoader) (dynamic.Interface, func() print.Rows, error) {
	var rows print.Rows
	if f.style.Format.IsTable() {
		var err error
		if rows, err = loader.Defined(ctx, types.Resources[0]); err != nil {
			return nil, nil, err
		}
		if rows == nil {
			printed, err := types.Printed()
			return printed, func() print.Rows { return printed.Rows(types.Resources[0].GVR) }, err
		}
	}
	return types.Client, func() print.Rows { return rows }, nil
}

// rest prints what comes after the pages, the next of which there is not: a list can be gone on with only for some
// minutes, and a reader may be slow. What is printed stays as it was; the rest is what there is now.
func (f flow) rest(ctx context.Context, types *session.Types, out *print.Flow, why error) error {
	resource := types.Resources[0].GVR.GroupResource()
	last, ok := out.Last()
	if !ok {
		return fmt.Errorf("%s: not all objects are printed, and the server lists them in no order by which to go on: %w", resource, why)
	}
	f.Warn(fmt.Sprintf("%s: what comes after %s is read anew, as it is now: %s", resource, print.Printable(last), print.Line(why.Error())))
	waiting, cancel := f.Target.Limit(ctx)
	defer cancel()
	return types.Sync(ctx, waiting, nil, func(synced []session.Cache) error {
		var errs []error
		for _, one := range synced {
			errs = append(errs, out.Rest(ctx, one.Section()))
		}
		return errors.Join(append(errs, out.Close())...)
	})
}
