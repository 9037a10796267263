package query

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/exit"
	"github.com/crdcache/crdcache/internal/cli/indexed"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/show"
	"github.com/crdcache/crdcache/internal/cli/tables"
)

// Warn tells a person something that is no error.
func (o *options) Warn(text string) { fmt.Fprintf(o.ErrOut, "warning: %s\n", text) }

// run resolves and syncs the type, and answers.
func (o *options) run(ctx context.Context) error {
	httpClient, err := o.target.HTTPClient()
	if err != nil {
		return err
	}
	waiting, cancel := o.target.Limit(ctx)
	defer cancel()
	r, err := o.resolve(waiting)
	if err != nil {
		return err
	}
	indexes, err := o.config.Indexes(r)
	if err != nil {
		return err
	}
	if err := o.check(indexes); err != nil {
		return err
	}
	client, err := dynamicinformer.NewClient(o.target.Config, httpClient)
	if err != nil {
		return err
	}
	if len(indexes) > 0 {
		o.cached.Indexes = indexers.CompileIndexes(indexes...)
	}
	cached, err := caches.New(client, []discovery.Resource{r}, caches.Options{Namespace: o.target.Namespace, Defaults: o.cached})
	if err != nil {
		return err
	}
	defer cached.Shutdown()
	done := o.target.Progress(cached.Progress)
	err = cached.Sync(waiting)
	done()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	loader, err := tables.NewLoader(o.target.Config, httpClient, client, o.target.Namespace, caches.Selectors(o.cached), o.ErrOut)
	if err != nil {
		return err
	}
	querier := query.New(query.ForInformer(cached.Synced[0].Informer), indexes...)
	return errors.Join(o.target.Err(), indexed.Explain(o.answer(ctx, querier, r, loader)))
}

// resolve finds the one type that is meant.
func (o *options) resolve(ctx context.Context) (discovery.Resource, error) {
	found, err := o.target.Resolve(ctx, []string{o.name})
	switch {
	case len(found) == 0:
		return discovery.Resource{}, err
	case len(found) > 1:
		names := make([]string, len(found))
		for i, r := range found {
			names[i] = r.GVR.GroupResource().String()
		}
		return discovery.Resource{}, exit.Usagef("%q stands for %d types; query takes one: %s", o.name, len(found), strings.Join(names, ", "))
	}
	return found[0], nil
}

// check asks the query of nothing, so that what is wrong with it is known before anything is read.
func (o *options) check(indexes []*indexers.Index) error {
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers.CompileIndexes(indexes...).Indexers())
	empty := query.New(query.ForIndexer(none), indexes...)
	if _, err := empty.Explain(o.query, query.Options{SortBy: o.asked.SortBy, Descending: o.asked.Descending, AllowScan: true}); err != nil {
		return o.explainIndex(err)
	}
	for _, name := range []string{o.values, o.groupBy} {
		if name == "" {
			continue
		}
		if _, err := empty.Values(context.Background(), name, query.All(), query.Options{AllowScan: true}); err != nil {
			return o.explainIndex(err)
		}
	}
	return nil
}

// explainIndex adds to an error about an index what to do without a config.
func (o *options) explainIndex(err error) error {
	var unknown *query.UnknownIndexError
	if errors.As(err, &unknown) && !o.config.Given {
		return exit.Usagef("%v; indexes come from --config, and --where needs none", err)
	}
	return indexed.Explain(err)
}

// answer prints what was asked for.
func (o *options) answer(ctx context.Context, querier *query.Querier, r discovery.Resource, loader *tables.Loader) error {
	switch {
	case o.count:
		n, err := querier.Count(ctx, o.query, o.asked)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(o.Out, n)
		return err
	case o.values != "", o.groupBy != "":
		return o.printValues(ctx, querier)
	}
	result, err := querier.Query(ctx, o.query, o.asked)
	if err != nil {
		return err
	}
	if o.explain {
		_, err = fmt.Fprintln(o.Out, result.Plan)
		return err
	}
	if o.keysOnly {
		err = o.printKeys(result)
	} else {
		err = show.Print(ctx, []show.Section{section(r, result)}, show.Options{
			IOStreams: o.IOStreams, Format: o.format, NoHeaders: o.noHeaders, Namespace: o.target.Namespace, Loader: loader,
		})
	}
	if err == nil && result.Continue != "" {
		fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", result.Continue)
	}
	return err
}

// section is what a query found, in its order.
func section(r discovery.Resource, result *query.Result) show.Section {
	return show.Section{Resource: r, Len: result.Len(), Print: func(ctx context.Context, _ func([]string), printer output.Printer) error {
		for _, object := range result.All() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := printer.Print(object); err != nil {
				return err
			}
		}
		return nil
	}}
}

func (o *options) printKeys(result *query.Result) error {
	out := bufio.NewWriter(o.Out)
	for _, key := range result.Keys() {
		fmt.Fprintln(out, key) // bufio keeps the first error for Flush
	}
	return out.Flush()
}

// printValues prints the values of an index, with counts for --group-by.
func (o *options) printValues(ctx context.Context, querier *query.Querier) error {
	values, err := querier.Values(ctx, o.values+o.groupBy, o.query, o.asked)
	if err != nil {
		return err
	}
	if o.groupBy == "" {
		out := bufio.NewWriter(o.Out)
		for _, v := range values {
			fmt.Fprintln(out, text(v)) // bufio keeps the first error for Flush
		}
		return out.Flush()
	}
	slices.SortStableFunc(values, func(a, b query.ValueCount) int { return cmp.Compare(b.Count, a.Count) })
	w := printers.GetNewTabWriter(o.Out)
	if !o.noHeaders {
		fmt.Fprintf(w, "%s\tCOUNT\n", strings.ToUpper(output.Printable(o.groupBy)))
	}
	for _, v := range values {
		fmt.Fprintf(w, "%s\t%d\n", text(v), v.Count)
	}
	return w.Flush()
}

// text is how a value is shown.
func text(v query.ValueCount) string { return output.Printable(v.Value) }
