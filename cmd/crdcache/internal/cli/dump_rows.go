package cli

import (
	"context"
	"net/url"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// maxRows is how many objects a type may have of which all rows are asked for at once where the reader of a pipe may want no
// more than the first ones.
const maxRows = 5000

// askServer prints a table by the rows of the server that keeps the type, and reports whether it has. Of types that are built in
// it has none, and csv has dates where its rows have ages: for these, objects are read.
func (o *dumpOptions) askServer(ctx context.Context) (done bool, err error) {
	if !o.HasServer() || o.order != nil || !o.style.Format.IsTable() || o.style.Format.Name == print.CSV {
		return false, nil
	}
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	from, err := o.Keeping(waiting)
	if err != nil || from.Resource.CRDUID == "" || from.Objects > maxRows && print.IsPipe(o.Out) {
		return false, nil // whoever reads the objects tells of the server
	}
	asked := url.Values{"rows": {"true"}, "scan": {"true"}}
	if o.Cached().LabelSelector != nil {
		asked.Set("labelSelector", session.Selectors(o.Cached()).LabelSelector)
	}
	answer, err := from.Query(waiting, o.LocalNamespace(from.Resource), asked)
	if err != nil || len(answer.Columns) == 0 {
		return false, nil
	}
	o.Say("%s is read from the server that keeps it, as rows", from.Resource)
	options, err := from.Types.Show(o.style)
	if err != nil {
		return true, err
	}
	options.Silent = o.ignoreNotFound
	return true, print.Sections(ctx, []print.Section{session.RowSection(from.Resource, answer, true)}, options)
}
