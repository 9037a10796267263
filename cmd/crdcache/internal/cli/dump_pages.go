package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// pageStream prints the objects of one type page by page to a pipe. The reader of a pipe can stop early.
type pageStream struct {
	*dumpVerb
	types *session.Types

	pages   iter.Seq2[[]unstructured.Unstructured, error]
	lastKey string // greatest printed key
	// unordered is set if the pages are not sorted by key.
	unordered bool
}

// canStream reports whether objects can be printed before all are read.
func (o *dumpVerb) canStream(types *session.Types) bool {
	return len(types.Resources) == 1 && !o.ReadsFiles() && o.order == nil &&
		o.style.Format.CanStream() &&
		print.IsPipe(o.Out)
}

// streamPages prints the objects of a type page by page. If the first page fails, it prints nothing and
// returns false: a sync retries and has better errors.
func (o *dumpVerb) streamPages(ctx, firstPageCtx context.Context,
	types *session.Types) (done bool, err error) {
	if o.PrintsTables {
		if err := types.LoadRows(firstPageCtx); err != nil {
			return true, err
		}
	}
	readCtx, stop := print.WithHangup(ctx, o.Out)
	defer stop()
	next, stopPages := iter.Pull2(types.Pages(readCtx, firstPageCtx))
	defer stopPages()
	first, err, ok := next()
	switch {
	case readCtx.Err() != nil:
		err = context.Cause(readCtx)
	case err != nil:
		return o.retryBySync(firstPageCtx, types, "waiting for the first page of the list", err)
	case ok:
		stream := &pageStream{dumpVerb: o, types: types, pages: prependPage(first, next)}
		section := print.Section{Resource: types.Resources[0], Rows: types.Rows(types.Resources[0].GVR),
			Each: func(w *print.Writer) error { return stream.each(readCtx, w) }}
		err = o.printSections(readCtx, types, section)
	}
	if err != nil && errors.Is(context.Cause(readCtx), print.ErrHungUp) {
		err = print.WriteHungUp(o.Out)
	}
	return true, err
}

// prependPage returns the first page followed by the pages of next.
func prependPage(first []unstructured.Unstructured,
	next func() ([]unstructured.Unstructured, error, bool)) iter.Seq2[[]unstructured.Unstructured, error] {
	return func(yield func([]unstructured.Unstructured, error) bool) {
		for page, err, ok := first, error(nil), true; ok && yield(page, err); {
			page, err, ok = next()
		}
	}
}

// each prints the pages, and writes each page before it waits for the next.
func (f *pageStream) each(ctx context.Context, w *print.Writer) error {
	for page, err := range f.pages {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return f.printRest(ctx, w, err)
		}
		before := f.lastKey
		for i := range page {
			object := print.NewObject(&page[i])
			f.unordered = f.unordered || before != "" && object.Key <= before
			f.lastKey = max(f.lastKey, object.Key)
			if err := w.Print(object); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// retryBySync returns false before the timeout, so that a sync retries. After the timeout, the error states
// waitReason.
func (o *dumpVerb) retryBySync(syncCtx context.Context, types *session.Types, waitReason string,
	err error) (done bool, _ error) {
	if syncCtx.Err() == nil {
		return false, nil
	}
	current := status.Status{
		GVR: types.Resources[0].GVR, State: status.Syncing, Message: waitReason + ": " +
			print.OneSafeLine(err.Error()), LastError: err,
	}
	return true, &dynamicinformer.NotSyncedError{NotSynced: []status.Status{current},
		Cause: context.Cause(syncCtx)}
}

// printRest prints the objects after the last page if the list expires because the reader of the pipe is
// slow. It reads the current state of the remaining objects.
func (f *pageStream) printRest(ctx context.Context, w *print.Writer, cause error) error {
	resource := f.types.Resources[0].GVR.GroupResource()
	if f.unordered {
		return fmt.Errorf("%s: not all objects were printed, because the list expired and is not sorted; run the command again with a file as output: %w", resource, cause)
	}
	f.Warnf("%s: the list expired after %s, the remaining objects are read in their current state: %v", resource,
		f.lastKey, cause)
	syncCtx, cancel := f.WithTimeout(ctx)
	defer cancel()
	return f.types.Sync(ctx, syncCtx, nil, func(synced []session.Cache) error {
		for _, syncedCache := range synced {
			if err := syncedCache.Section(nil, nil, f.lastKey).Each(w); err != nil {
				return err
			}
		}
		return nil
	})
}
