package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// aggregation reads --group-by and --compute.
func (f *queryFlags) aggregation() (a query.Aggregation, err error) {
	for _, text := range f.groupBy {
		names := []string{text}
		if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "$") { // a path may have commas of its own
			names = strings.Split(text, ",")
		}
		for _, name := range names {
			if name = strings.TrimSpace(name); name == "" {
				return a, exit.Usagef("--group-by needs the name of an index, or a path")
			}
			a.GroupBy = append(a.GroupBy, name)
		}
	}
	for _, text := range f.compute {
		m, err := query.ParseMeasure(text)
		if err != nil {
			return a, exit.Usagef("--compute: %v", err)
		}
		a.Measures = append(a.Measures, m)
	}
	return a, nil
}

// printGroups prints the groups, the most frequent first. Of one index alone, objects without a value are in no group.
func (o *queryOptions) printGroups(ctx context.Context, querier *query.Querier) error {
	found, err := querier.Aggregate(ctx, o.query, o.groups, o.asked)
	if err != nil {
		return err
	}
	o.warnOfDoubts(found.Plan)
	groups := found.Groups
	if len(o.groups.GroupBy) == 1 && len(o.groups.Measures) == 0 {
		groups = slices.DeleteFunc(groups, func(g query.Group) bool { return g.Values[0] == indexers.Null })
	}
	slices.SortStableFunc(groups, func(a, b query.Group) int { return cmp.Compare(b.Count, a.Count) })
	if o.style.Format.Name != print.Table {
		o.warnOfSkipped(groups)
		return o.printNumbers(groups)
	}
	w := printers.GetNewTabWriter(o.Out)
	if !o.style.NoHeaders {
		fmt.Fprintln(w, strings.Join(o.groupHeaders(), "\t"))
	}
	for _, g := range groups {
		var cells []string
		for _, v := range g.Values {
			if v == indexers.Null {
				v = "<none>"
			}
			cells = append(cells, print.Printable(v))
		}
		cells = append(cells, fmt.Sprint(g.Count))
		for _, r := range g.Results {
			cells = append(cells, print.Printable(cmp.Or(r.Value, "<none>")))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	o.warnOfSkipped(groups)
	return w.Flush()
}

// warnOfSkipped says which values were not computed with.
func (o *queryOptions) warnOfSkipped(groups []query.Group) {
	for i, m := range o.groups.Measures {
		n := 0
		for _, g := range groups {
			n += g.Results[i].Skipped
		}
		if n > 0 {
			fmt.Fprintf(o.ErrOut, "warning: --compute %s: values that are no numbers were left out: %d\n", m, n)
		}
	}
}

func (o *queryOptions) groupHeaders() (headers []string) {
	for _, name := range o.groups.GroupBy {
		headers = append(headers, strings.ToUpper(print.Printable(name)))
	}
	headers = append(headers, "COUNT")
	for _, m := range o.groups.Measures {
		headers = append(headers, strings.ToUpper(print.Printable(m.String())))
	}
	return headers
}
