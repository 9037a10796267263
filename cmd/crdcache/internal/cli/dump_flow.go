package cli

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// flow prints the objects of one type page by page into a pipe, whose reader may want no more than the first ones. It
// reports false, having printed nothing, where all objects have to be read before the first is printed, and where there
// is no first page: a sync tries again, and knows what to say.
func (o *dumpOptions) flow(ctx, waiting context.Context, types *session.Types) (done bool, err error) {
	if o.order != nil || len(types.Resources) != 1 || o.Target.Offline() || !o.style.Format.Flows() || !print.IsPipe(o.Out) {
		return false, nil
	}
	options, err := types.Show(o.style)
	if err != nil {
		return true, err
	}
	options.Silent = o.ignoreNotFound
	client, rows, err := o.rows(waiting, types, options.Loader)
	if err != nil {
		return false, nil
	}
	ctx, stop := print.WhileRead(ctx, o.Out)
	defer stop()
	var flow *print.Flow
	for objects, err := range types.Pages(ctx, waiting, client) {
		switch {
		case ctx.Err() != nil:
			return true, context.Cause(ctx)
		case err != nil && flow == nil:
			return false, nil
		case err != nil:
			return true, o.rest(ctx, types, flow, err)
		}
		if flow == nil {
			if flow, err = options.Flow(types.Resources[0], rows()); err != nil {
				return true, err
			}
		}
		if err := flow.Page(objects); err != nil {
			return true, err
		}
	}
	if flow == nil {
		return true, context.Cause(ctx)
	}
	return true, flow.Close()
}

// rows returns the client that lists what is printed, and what gives the rows once something is listed.
func (o *dumpOptions) rows(ctx context.Context, types *session.Types, loader *print.RowLoader) (dynamic.Interface, func() print.Rows, error) {
	var rows print.Rows
	if o.style.Format.IsTable() {
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
func (o *dumpOptions) rest(ctx context.Context, types *session.Types, flow *print.Flow, why error) error {
	resource := types.Resources[0].GVR.GroupResource()
	last, ok := flow.Last()
	if !ok {
		return fmt.Errorf("%s: not all objects are printed, and the server lists them in no order by which to go on: %w", resource, why)
	}
	o.Warn(fmt.Sprintf("%s: what comes after %s is read anew, as it is now: %s", resource, print.Printable(last), print.Line(why.Error())))
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	return types.Sync(ctx, waiting, nil, func(synced []session.Cache) error {
		var errs []error
		for _, one := range synced {
			errs = append(errs, flow.Rest(ctx, one.Section()))
		}
		return errors.Join(append(errs, flow.Close())...)
	})
}
