package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

// run answers from the local cache server, or syncs the type and answers from its cache.
func (o *queryOptions) run(ctx context.Context) error {
	if done, err := o.answerFromServer(ctx); done {
		return err
	}
	return o.Sync(ctx, session.SyncCallbacks{
		BeforeSync: func(types *session.Types, indexes session.Indexes) error {
			if err := o.check(types, indexes); err != nil {
				return err
			}
			o.warnOfMismatches(ctx, types)
			return nil
		},
		AfterSync: func(ctx context.Context, types *session.Types, indexes session.Indexes,
			synced []session.Cache) error {
			if len(synced) == 0 {
				return nil
			}
			syncedCache := synced[0]
			querier := query.New(query.ForInformer(syncedCache.Informer),
				indexes[syncedCache.Resource.GVR]...)
			if follows, followed := query.UsesReferences(o.query); follows {
				return o.answerWithReferences(ctx, querier, types, syncedCache, followed)
			}
			return session.ExplainQuery(o.printResult(ctx, querier, types))
		},
	})
}

func (o *queryOptions) warnOfMismatches(ctx context.Context, types *session.Types) {
	o.Target.WarnOfMismatches(ctx, types.Client, types.Resources[0], o.query,
		session.Columns{Flag: "sort-by", Paths: query.Columns(o.options, query.Aggregation{})},
		session.Columns{Flag: "group-by", Paths: query.Columns(query.Options{},
			query.Aggregation{GroupBy: o.groups.GroupBy})},
		session.Columns{Flag: "compute", Paths: query.Columns(query.Options{},
			query.Aggregation{Measures: o.groups.Measures})})
}

// check rejects several types, and validates the query on an empty cache before objects are read.
func (o *queryOptions) check(types *session.Types, found session.Indexes) error {
	if len(types.Resources) > 1 {
		names := make([]string, len(types.Resources))
		for i, r := range types.Resources {
			names[i] = r.GVR.GroupResource().String()
		}
		return exit.Usagef("%q matches %d types, query needs one: %s", o.name, len(names),
			strings.Join(names, ", "))
	}
	indexes := found[types.Resources[0].GVR]
	all := indexers.CompileIndexes(indexes...).Indexers()
	all[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc // like every informer
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc, all)
	view := references.NewTypeGraph(o.Config.References(types.Resources[0]))
	empty := query.New(query.ForIndexer(none), indexes...).WithReferences(view)
	if _, err := empty.Explain(o.query, query.Options{SortBy: o.options.SortBy,
		Descending: o.options.Descending,
		AllowScan:  true}); err != nil {
		return o.explainIndex(err)
	}
	if o.values != "" {
		if _, err := empty.Values(context.Background(), o.values, query.All(),
			query.Options{AllowScan: true}); err != nil {
			return o.explainIndex(err)
		}
	}
	if _, err := empty.Aggregate(context.Background(), query.All(), o.groups,
		query.Options{AllowScan: true}); err != nil {
		return o.explainIndex(err)
	}
	return nil
}

// explainIndex adds a remedy to an error about an unknown index.
func (o *queryOptions) explainIndex(err error) error {
	var unknown *query.UnknownIndexError
	switch {
	case !errors.As(err, &unknown):
	case strings.HasPrefix(o.options.SortBy, "{") && strings.HasPrefix(unknown.Name, "{"):
		return exit.Usagef("--sort-by takes a path without braces, as in .spec.replicas; got %s",
			o.options.SortBy)
	case !o.Config.IsSet:
		return exit.Usagef("%v; declare indexes with --config, or use --where or a path", err)
	}
	return session.ExplainQuery(err)
}

// printResult prints the result in the requested form.
func (o *queryOptions) printResult(ctx context.Context, querier *query.Querier, types *session.Types) error {
	switch {
	case o.count:
		n, err := querier.Count(ctx, o.query, o.options)
		if err != nil {
			return err
		}
		if plan, err := querier.Explain(o.query, o.options); err == nil {
			o.warnIncomplete(plan)
		}
		return o.printCount(n)
	case o.values != "":
		return o.printValues(ctx, querier)
	case len(o.groups.GroupBy)+len(o.groups.Measures) > 0:
		return o.printGroups(ctx, querier)
	}
	result, err := querier.Query(ctx, o.query, o.options)
	if err != nil {
		return err
	}
	if o.explain {
		_, err = fmt.Fprintln(o.Out, strings.TrimSuffix(fmt.Sprint(result.Plan), "\n"))
		return err
	}
	o.warnIncomplete(result.Plan)
	if o.keysOnly {
		err = o.printKeys(result.Keys())
	} else {
		err = o.print(ctx, types, session.ResultSection(types.Resources[0], result))
	}
	if err == nil && result.Continue != "" {
		fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", result.Continue)
	}
	return err
}

func (o *queryOptions) warnIncomplete(plan *query.Plan) {
	o.warn(plan.Warnings)
}

func (o *queryOptions) warn(texts []string) {
	for _, w := range texts {
		fmt.Fprintf(o.ErrOut, "warning: %s\n", print.Printable(w))
	}
}

// print prints the objects of a result.
func (o *queryOptions) print(ctx context.Context, types *session.Types, found print.Section) error {
	options, err := types.SectionOptions(o.style)
	if err != nil {
		return err
	}
	return print.Sections(ctx, []print.Section{found}, options)
}

func (o *queryOptions) printKeys(keys []string) error {
	out := bufio.NewWriter(o.Out)
	for _, key := range keys {
		fmt.Fprintln(out, key) // bufio keeps the first error for Flush
	}
	return out.Flush()
}

func (o *queryOptions) printValues(ctx context.Context, querier *query.Querier) error {
	values, err := querier.Values(ctx, o.values, o.query, o.options)
	if err != nil {
		return err
	}
	return o.showValues(values)
}

func (o *queryOptions) showValues(values []query.ValueCount) error {
	out := bufio.NewWriter(o.Out)
	for _, v := range values {
		fmt.Fprintln(out, print.Printable(v.Value)) // bufio keeps the first error for Flush
	}
	return out.Flush()
}

// answerFromServer answers from the local cache server, and reports whether it did. Otherwise the objects are
// read, from that server or the cluster, and errors have better texts.
func (o *queryOptions) answerFromServer(ctx context.Context) (done bool, err error) {
	if !o.HasServer() {
		return false, nil
	}
	answer, server, err := o.queryServer(ctx)
	if err != nil {
		o.Notef("the cache server cannot answer the query, so the objects are read: %v", err)
		return false, nil
	}
	defer answer.Close()
	o.Notef("answered by the cache server for %s, at version %s", server.Resource, answer.ResourceVersion)
	o.warnOfMismatches(ctx, server.ResolvedTypes)
	o.warn(answer.Warnings)
	return true, o.printLocalAnswer(ctx, answer, server)
}

func (o *queryOptions) queryServer(ctx context.Context) (*session.Answer, *session.LocalServer, error) {
	if follows, _ := query.UsesReferences(o.query); follows {
		return nil, nil, fmt.Errorf("it does not support queries about references")
	}
	server, err := o.LocalServer(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o.explain && (o.NamespaceFor(server.Resource) != "" || o.Cached().LabelSelector != nil) {
		return nil, nil, errors.New("its plans count all cached objects")
	}
	answer, err := server.Query(ctx, o.NamespaceFor(server.Resource), o.parameters())
	return answer, server, err
}

// parameters returns the query parameters of the request.
func (o *queryOptions) parameters() url.Values {
	p := url.Values{"q": {o.query.String()}, "scan": {"true"}}
	set := func(name, value string, isSet bool) {
		if isSet {
			p.Set(name, value)
		}
	}
	set("labelSelector", session.Selectors(o.Cached()).LabelSelector, o.Cached().LabelSelector != nil)
	set("sortBy", o.options.SortBy, o.options.SortBy != "")
	set("descending", "true", o.options.Descending)
	set("limit", strconv.Itoa(o.options.Limit), o.options.Limit > 0)
	set("continue", o.options.Continue, o.options.Continue != "")
	set("count", "true", o.count)
	set("keys", "true", o.keysOnly || o.explain || o.style.Format.Name == print.Name)
	// CSV has dates where rows have ages
	set("rows", "true", o.style.Format.IsTable() && o.style.Format.Name != print.CSV)
	set("values", o.values, o.values != "")
	p["groupBy"] = o.groups.GroupBy
	for _, m := range o.groups.Measures {
		p.Add("compute", m.String())
	}
	return p
}

// printLocalAnswer prints an answer of the local cache server like an answer from the command's own cache.
func (o *queryOptions) printLocalAnswer(ctx context.Context, answer *session.Answer,
	from *session.LocalServer) (err error) {
	switch {
	case answer.Count != nil:
		return o.printCount(*answer.Count)
	case o.values != "":
		return o.showValues(answer.Values)
	case len(o.groups.GroupBy)+len(o.groups.Measures) > 0:
		return o.showGroups(answer.Groups)
	case o.explain:
		_, err := fmt.Fprintln(o.Out, strings.TrimSuffix(answer.Plan, "\n"))
		return err
	case o.keysOnly:
		err = o.printKeys(answer.Keys)
	default:
		section := answer.Section(o.Cached().Transform != nil)
		if len(answer.Columns) > 0 {
			section = answer.RowSection(false)
		}
		err = o.print(ctx, from.ResolvedTypes, section)
	}
	if err == nil && answer.Continue != "" {
		fmt.Fprintf(o.ErrOut, "there is more: --continue %s\n", answer.Continue)
	}
	return err
}
