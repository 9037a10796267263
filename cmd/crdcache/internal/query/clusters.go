package query

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// output is the output for all clusters. Only the cluster that has its turn uses it.
type output struct {
	*print.Output
	page   *query.ClusterPage // nil for one cluster
	groups []query.Group
	// hasGroups is set if a query of groups or numbers was answered, possibly without groups.
	hasGroups bool
	// pageEnded is set if a page of --limit ended before the last object.
	pageEnded atomic.Bool
}

// startPage starts with the cluster of the continue token, where the page begins.
func (o *verb) startPage() error {
	if o.readers[0].Cluster == "" {
		return nil
	}
	page, first, err := query.NewClusterPage(o.options)
	start := slices.IndexFunc(o.readers,
		func(r *session.Reader) bool { return first == "" || r.Cluster == first })
	if err != nil || start < 0 {
		return session.Usagef(
			"--continue: the token is from another query or cluster: repeat the query and the contexts that printed it")
	}
	o.readers, o.output.page = o.readers[start:], page
	return nil
}

// beginPage limits the query of one of several clusters to the objects that the page can still take.
func (o *verb) beginPage(ctx context.Context) error {
	if o.output.page == nil {
		return nil
	}
	if o.options.Limit > 0 { // the earlier clusters determine the rest
		if err := o.AwaitTurn(ctx); err != nil {
			return err
		}
	}
	if o.options, o.pageFull = o.output.page.Options(o.Cluster); o.pageFull {
		o.keysOnly, o.PrintsTables = true, false
	}
	return nil
}

// endPage prints the token of the next page, if there is one.
func (o *verb) endPage(objects int, token string) {
	if o.output.page != nil {
		token = o.output.page.Add(o.Cluster, objects, token)
	}
	if token != "" {
		fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", token)
		o.output.pageEnded.Store(true)
	}
}
