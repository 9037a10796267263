package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// pageStream prints the objects of one type page by page to a pipe. The reader of a pipe can stop early.
type pageStream struct {
	*dumpVerb
	types *session.Types

	pages   iter.Seq2[session.Page, error]
	lastKey string // greatest printed key
	// unordered is set if the pages are not sorted by distinct keys.
	unordered bool
}

// canStream reports whether objects can be printed before all are read.
func (o *dumpVerb) canStream(types *session.Types) bool {
	return len(types.Resources) == 1 && !o.ReadsFiles() && o.order == nil &&
		o.style.Format.CanStream() &&
		print.IsPipe(o.Out)
}

// streamPages prints the objects of a type page by page. If the first page fails, it prints nothing.
func (o *dumpVerb) streamPages(ctx, firstPageCtx context.Context, types *session.Types) error {
	readCtx, stop := print.WithHangup(ctx, o.Out)
	defer stop()
	resource := types.Resources[0]
	next, stopPages := iter.Pull2(types.Pages(readCtx, firstPageCtx, resource))
	defer stopPages()
	first, err, ok := next()
	switch {
	case readCtx.Err() != nil:
		err = context.Cause(readCtx)
	case err == nil && ok:
		stream := &pageStream{dumpVerb: o, types: types, pages: prependPage(first, next)}
		section := print.Section{Resource: resource, Rows: types.Rows(resource.GVR),
			Each: func(w *print.Writer) error { return stream.each(readCtx, w) }}
		err = o.printSections(readCtx, types, section)
	}
	if err != nil && errors.Is(context.Cause(readCtx), print.ErrHungUp) {
		err = print.WriteHungUp(o.Out)
	}
	return err
}

// prependPage returns the first page followed by the pages of next.
func prependPage(first session.Page,
	next func() (session.Page, error, bool)) iter.Seq2[session.Page, error] {
	return func(yield func(session.Page, error) bool) {
		for page, err, ok := first, error(nil), true; ok && yield(page, err); {
			page, err, ok = next()
		}
	}
}

// each prints the pages, and writes each page before it waits for the next.
func (f *pageStream) each(ctx context.Context, w *print.Writer) error {
	resource := f.types.Resources[0]
	for page, err := range f.pages {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case apierrors.IsResourceExpired(err):
			return f.printRest(ctx, w, err)
		case err != nil:
			return err
		}
		before := f.lastKey
		for _, item := range page.Items {
			key := session.KeyOf(item)
			f.unordered = f.unordered || before != "" && key <= before
			f.lastKey = max(f.lastKey, key)
			if err := session.PrintItem(w, resource, item); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// printRest prints the objects after the last page if the list expires because the reader of the pipe is
// slow. It reads the current state of the remaining objects.
func (f *pageStream) printRest(ctx context.Context, w *print.Writer, cause error) error {
	resource := f.types.Resources[0]
	if f.unordered {
		return fmt.Errorf("%s: not all objects were printed, because the list expired and is not sorted; run the command again with a file as output: %w",
			resource.GVR.GroupResource(), cause)
	}
	f.Warnf("%s: the list expired after %s, the remaining objects are read in their current state: %v",
		resource.GVR.GroupResource(), f.lastKey, cause)
	limitedCtx, cancel := f.WithTimeout(ctx)
	defer cancel()
	lists, err := f.types.ListAll(ctx, limitedCtx)
	for _, list := range lists {
		err = errors.Join(err, list.After(f.lastKey).Section(nil, nil).Each(w))
	}
	return err
}
