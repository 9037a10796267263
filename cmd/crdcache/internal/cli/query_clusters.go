package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// queryOutput is the output for all clusters. Only the cluster that has its turn uses it.
type queryOutput struct {
	*print.Output
	keys   int // printed with --keys-only
	counts []clusterCount
	groups []clusterGroup
	// hasGroups is set if a query of groups was answered, possibly without groups.
	hasGroups bool
	// pageEnded is set if a page of --limit ended before the last object.
	pageEnded atomic.Bool
}

// clusterCount is the number of matching objects of a cluster, as --count prints it.
type clusterCount struct {
	Cluster string `json:"cluster,omitempty"`
	Count   int    `json:"count"`
}

// startPage reads the cluster of a continue token, where the next page begins. Its form is CLUSTER/TOKEN.
func (o *queryVerb) startPage() error {
	o.limit = o.options.Limit
	if o.options.Continue == "" || o.readers[0].Cluster == "" {
		return nil
	}
	slash := strings.LastIndexByte(o.options.Continue, '/')
	start := slices.IndexFunc(o.readers,
		func(r *session.Reader) bool { return slash >= 0 && r.Cluster == o.options.Continue[:slash] })
	if start < 0 {
		return session.Usagef("--continue: the token is from another query or cluster: repeat the query and the contexts that printed it")
	}
	o.readers, o.options.Continue = o.readers[start:], o.options.Continue[slash+1:]
	return nil
}

// beginPage limits the query of one of several clusters to the rest of the page. If the page is full, only
// the number of its objects is needed.
func (o *queryVerb) beginPage(ctx context.Context) error {
	if o.Cluster == "" || o.options.Limit == 0 || o.pageFull {
		return nil
	}
	if err := o.AwaitTurn(ctx); err != nil {
		return err
	}
	rest := o.limit - o.output.Printed() - o.output.keys
	o.options.Limit, o.pageFull = max(rest, 1), rest <= 0
	if o.pageFull {
		o.count, o.keysOnly, o.PrintsTables = true, false, false
	}
	return nil
}

// endPage prints the token of the next page.
func (o *queryVerb) endPage(token string) {
	if o.Cluster != "" {
		token = o.Cluster + "/" + token
	}
	fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", token)
	o.output.pageEnded.Store(true)
}

// countCluster adds the number of objects of a cluster. After a full page it shows whether there are more.
func (o *queryVerb) countCluster(n int) {
	switch {
	case !o.pageFull:
		o.output.counts = append(o.output.counts, clusterCount{o.Cluster, n})
	case n > 0:
		o.endPage("")
	}
}

// finish prints the counts and groups of all clusters, and completes the output.
func (o *queryVerb) finish() error {
	switch {
	case len(o.output.counts) > 0:
		return o.printCounts()
	case o.output.hasGroups:
		return o.printGroups()
	}
	return o.output.Close()
}

func (o *queryVerb) printCounts() error {
	counts := o.output.counts
	header, rows := []string{"COUNT"}, make([][]string, len(counts))
	for i, c := range counts {
		rows[i] = []string{strconv.Itoa(c.Count)}
		if c.Cluster != "" {
			rows[i] = slices.Insert(rows[i], 0, c.Cluster)
		}
	}
	several := counts[0].Cluster != ""
	if several {
		header = slices.Insert(header, 0, "CLUSTER")
	}
	switch {
	case o.style.Format.Name == print.CSV:
		return o.printCSV(append([][]string{header}, rows...))
	case o.style.Format.Name == print.JSON && several:
		return o.printJSON(counts)
	case o.style.Format.Name == print.JSON:
		return o.printJSON(counts[0])
	case several:
		return o.printRows(header, rows)
	}
	_, err := fmt.Fprintln(o.output.Out, counts[0].Count)
	return err
}
