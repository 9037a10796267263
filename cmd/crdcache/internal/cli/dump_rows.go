package cli

import (
	"context"
	"net/url"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// maxRows is how many rows are asked for at once where the reader of a pipe may want no more than the first ones.
const maxRows = 5000

// askServer prints a table by the rows of the server that keeps the type, and reports whether it has. Of types that are built in
// it has none, and csv has dates where its rows have ages: for these, objects are read.
func (o *dumpOptions) askServer(ctx context.Context) (done bool, err error) {
	if !o.HasServer() || o.order != nil || !o.style.Format.IsTable() || o.style.Format.Name == print.CSV {
		return false, nil
	}
	from, answer, err := o.rows(ctx)
	if err != nil || answer == nil {
		return false, nil // whoever reads the objects tells of the server
	}
	defer answer.Close()
	if len(answer.Columns) == 0 {
		return false, nil
	}
	o.Say("%s is read from the server that keeps it, as rows", from.Resource)
	options, err := from.Types.Show(o.style)
	if err != nil {
		return true, err
	}
	options.Silent = o.ignoreNotFound
	return true, print.Sections(ctx, []print.Section{answer.RowSection(true)}, options)
}

// rows asks the server; nil where it is not to be asked.
func (o *dumpOptions) rows(ctx context.Context) (*session.Local, *session.Answer, error) {
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	from, err := o.Keeping(waiting)
	if err != nil || from.Resource.CRDUID == "" {
		return nil, nil, err
	}
	namespace, asked := o.LocalNamespace(from.Resource), url.Values{"scan": {"true"}}
	if o.Cached().LabelSelector != nil {
		asked.Set("labelSelector", session.Selectors(o.Cached()).LabelSelector)
	}
	if from.Objects > maxRows && print.IsPipe(o.Out) {
		asked.Set("count", "true")
		counted, err := from.Query(ctx, namespace, asked)
		if err != nil {
			return nil, nil, err
		}
		counted.Close()
		if counted.Count == nil || *counted.Count > maxRows {
			return nil, nil, nil
		}
		asked.Del("count")
	}
	asked.Set("rows", "true")
	answer, err := from.Query(ctx, namespace, asked)
	return from, answer, err
}
