package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// run answers the query for each cluster.
func (o *verb) run(ctx context.Context) error {
	err := session.EachCluster(ctx, o.readers, func(ctx context.Context, r *session.Reader) error {
		clusterVerb := *o
		clusterVerb.Reader = r
		return clusterVerb.runCluster(ctx)
	})
	if o.output.hasGroups {
		return errors.Join(err, o.printGroups())
	}
	return errors.Join(err, o.output.Close())
}

// runCluster answers from the local cache server, or syncs the type and answers from its cache.
func (o *verb) runCluster(ctx context.Context) error {
	if o.output.pageEnded.Load() {
		return nil
	}
	if done, err := o.answerFromServer(ctx); done {
		return err
	}
	if o.count && o.ReadsOnlyIdentities() {
		return o.countInFiles(ctx)
	}
	return o.Sync(ctx, session.SyncCallbacks{
		BeforeSync: func(types *session.Types) error {
			if err := o.validateQuery(types); err != nil {
				return err
			}
			o.useSchema(types)
			return nil
		},
		AfterSync: func(ctx context.Context, types *session.Types, synced []session.Cache) error {
			if len(synced) == 0 {
				return nil
			}
			declared, _, err := o.Declared(synced[0].Resource)
			if err != nil {
				return err
			}
			querier := query.New(bind.ForInformer(synced[0].Informer), declared.Indexes...)
			if synced[0].Shared {
				o.query = o.Narrow(o.query, synced[0].Resource)
			}
			if usesReferences, referencedTypes := query.UsesReferences(o.query); usesReferences {
				return o.answerWithReferences(ctx, querier, types, synced[0], referencedTypes)
			}
			return session.ExplainQuery(o.printResult(ctx, querier, types))
		},
	})
}

// countInFiles counts the objects of a type without a cache.
func (o *verb) countInFiles(ctx context.Context) error {
	limitedCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	types, unresolved := o.ResolveTypes(limitedCtx)
	if types == nil {
		return unresolved
	}
	if err := o.validateQuery(types); err != nil {
		return err
	}
	lists, err := types.ListAll(ctx, limitedCtx)
	if len(lists) == 0 {
		return err
	}
	count := lists[0].Len()
	return errors.Join(unresolved, o.printAnswer(ctx, live.Answer{Count: &count}, print.Section{}, types))
}

func (o *verb) useSchema(types *session.Types) {
	o.query = o.UseSchema(types.Resources[0], o.Config, o.query,
		session.FlagPaths{Flag: "sort-by", Paths: query.Columns(o.options, query.Aggregation{})},
		session.FlagPaths{Flag: "group-by", Paths: query.Columns(query.Options{},
			query.Aggregation{GroupBy: o.aggregation.GroupBy})},
		session.FlagPaths{Flag: "compute", Paths: query.Columns(query.Options{},
			query.Aggregation{Measures: o.aggregation.Measures})})
}

// validateQuery rejects several types, and validates the query on an empty cache before objects are read.
func (o *verb) validateQuery(types *session.Types) error {
	if len(types.Resources) > 1 {
		names := naming.Texts(types.Resources,
			func(r discovery.Resource) string { return r.GVR.GroupResource().String() })
		return session.Usagef("%q matches %d types; name one of them: %s", o.typeName, len(names),
			strings.Join(names, ", "))
	}
	declared, options, err := o.Declared(types.Resources[0])
	if err != nil {
		return err
	}
	if options.Keep.Paths != nil || len(options.Prune.Paths) > 0 || declared.Storage.Mode == "Metadata" {
		o.Warnf("the objects lack fields: the config drops them with keep, prune or storage")
	}
	indexes := declared.Indexes
	indexFuncs := indexers.CompileIndexes(indexes...).Indexers()
	indexFuncs[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc // like every informer
	emptyIndexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexFuncs)
	typeGraph := references.NewTypeGraph(declared.References)
	emptyQuerier := query.New(query.ForIndexer(emptyIndexer), indexes...).WithReferences(typeGraph)
	queryOptions := query.Options{SortBy: o.options.SortBy, AllowScan: true}
	if _, err := emptyQuerier.Explain(o.query, queryOptions); err != nil {
		return o.explainIndex(err)
	}
	_, err = emptyQuerier.Aggregate(context.Background(), query.All(), o.aggregation,
		query.Options{AllowScan: true})
	return o.explainIndex(err)
}

// explainIndex adds a remedy to an error about an unknown index.
func (o *verb) explainIndex(err error) error {
	switch unknown, ok := errors.AsType[*query.UnknownIndexError](err); {
	case !ok:
	case strings.HasPrefix(o.options.SortBy, "{") && strings.HasPrefix(unknown.Name, "{"):
		return session.Usagef("--sort-by takes a path without braces, as in .spec.replicas; got %s",
			o.options.SortBy)
	case !o.Config.IsSet:
		return session.Usagef("%v; declare indexes with --config, or use --where or a path", err)
	}
	return session.ExplainQuery(err)
}

func (o *verb) printResult(ctx context.Context, querier *query.Querier, types *session.Types) error {
	if err := o.beginPage(ctx); err != nil {
		return err
	}
	answer, objects, err := o.queryCache(ctx, querier, types)
	if err != nil {
		return err
	}
	return o.printAnswer(ctx, answer, objects, types)
}

// queryCache queries a cache. The answer has the form of the cache server's answers, and no objects.
func (o *verb) queryCache(ctx context.Context, querier *query.Querier,
	types *session.Types) (answer live.Answer, objects print.Section, err error) {
	switch {
	case o.count:
		n, err := querier.Count(ctx, o.query, o.options)
		if err != nil {
			return answer, objects, err
		}
		answer.Count = &n
		if plan, err := querier.Explain(o.query, o.options); err == nil {
			answer.Warnings = plan.Warnings
		}
		return answer, objects, nil
	case o.hasGroups():
		aggregated, err := querier.Aggregate(ctx, o.query, o.aggregation, o.options)
		if err == nil {
			answer.Groups, answer.Warnings = aggregated.Groups, aggregated.Plan.Warnings
		}
		return answer, objects, err
	}
	result, err := querier.Query(ctx, o.query, o.options)
	if err != nil {
		return answer, objects, err
	}
	if err := o.AwaitTurn(ctx); err != nil { // the page of the report depends on the earlier clusters
		return answer, objects, err
	}
	answer.Continue = result.Continue
	switch {
	case o.explain:
		answer.Plan, answer.Continue = fmt.Sprint(result.Plan), ""
	case o.keysOnly:
		answer.Keys = session.ResultKeys(result)
	}
	answer.Warnings = result.Plan.Warnings
	objects, err = types.ResultSection(ctx, result)
	return answer, objects, err
}

// printAnswer prints an answer in the requested form. Counts and groups are only collected: run prints them
// after the last cluster.
func (o *verb) printAnswer(ctx context.Context, answer live.Answer, objects print.Section,
	types *session.Types) (err error) {
	if err := o.AwaitTurn(ctx); err != nil || o.output.pageEnded.Load() {
		return err
	}
	if !o.explain { // the plan has the warnings
		for _, warning := range answer.Warnings {
			o.Warnf("%s", warning)
		}
	}
	out := bufio.NewWriter(o.Out) // it keeps the first error for Flush
	printed, objectCount := o.output.Printed(), len(answer.Keys)
	switch {
	case o.pageFull:
	case answer.Count != nil:
		o.addGroups([]query.Group{{Count: *answer.Count}})
	case o.hasGroups():
		o.addGroups(answer.Groups)
	case o.explain:
		if o.Cluster != "" {
			fmt.Fprintf(out, "cluster %s:\n", print.Printable(o.Cluster))
		}
		fmt.Fprintln(out, strings.TrimSuffix(answer.Plan, "\n"))
	case o.keysOnly:
		for _, key := range answer.Keys {
			fmt.Fprintln(out, print.ClusterPrefix(o.Cluster)+key)
		}
	default:
		if err := o.output.Print(ctx, []print.Section{objects}, types.SectionOptions()); err != nil {
			return err
		}
		objectCount = o.output.Printed() - printed
	}
	if err := out.Flush(); err != nil {
		return err
	}
	o.endPage(objectCount, answer.Continue)
	return nil
}

// answerFromServer answers from the local cache server. If it returns false, the caller reads the objects,
// and its errors have better texts.
func (o *verb) answerFromServer(ctx context.Context) (done bool, err error) {
	if !o.HasServer() {
		return false, nil
	}
	answer, server, err := o.queryServer(ctx)
	if err != nil {
		o.Notef("the cache server cannot answer the query, so the objects are read: %v", err)
		return false, nil
	}
	defer answer.Close()
	types := server.ResolvedTypes
	objects, err := o.answeredObjects(ctx, answer, server)
	if err != nil {
		o.Notef("the cache server cannot print the answer, so the objects are read: %v", err)
		return false, nil
	}
	o.Notef("answered by the cache server for %s, at version %s", server.Resource, answer.ResourceVersion)
	session.ReportOf(ctx).Read(server.Resource.GVR.GroupResource(), answer.ResourceVersion, answer.Contact)
	o.useSchema(types)
	return true, o.printAnswer(ctx, answer.Answer, objects, types)
}

func (o *verb) queryServer(ctx context.Context) (*session.Answer, *session.LocalServer, error) {
	if usesReferences, _ := query.UsesReferences(o.query); usesReferences {
		return nil, nil, fmt.Errorf("it does not support queries about references")
	}
	server, err := o.LocalServer(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o.explain && (o.NamespaceFor(server.Resource) != "" || o.InformerOptions().LabelSelector != nil) {
		return nil, nil, errors.New("its plans ignore the namespace and the selector")
	}
	if err := o.beginPage(ctx); err != nil {
		return nil, nil, err
	}
	parameters := o.parameters()
	if o.PrintsTables && !o.serverHasRows(server) {
		if err := server.ResolvedTypes.LoadRows(ctx); err != nil {
			return nil, nil, err
		}
		if !server.ResolvedTypes.HasColumns(server.Resource.GVR) {
			parameters.Set("keys", "true")
		}
	}
	answer, err := server.Query(ctx, parameters)
	return answer, server, err
}

// answeredObjects returns the objects of an answer. The API server prints the rows of built-in types.
func (o *verb) answeredObjects(ctx context.Context, answer *session.Answer,
	server *session.LocalServer) (print.Section, error) {
	types, gvr := server.ResolvedTypes, server.Resource.GVR
	switch {
	case len(answer.Columns) > 0:
		return answer.RowSection(), nil
	case o.PrintsTables && o.serverHasRows(server):
		return print.Section{}, errors.New("its answer has no table rows")
	case o.PrintsTables && !types.HasColumns(gvr):
		return types.PrintedSection(ctx, answer.Keys)
	}
	return answer.Section(types.Rows(gvr), o.OmitsManagedFields()), nil
}

// serverHasRows reports whether the cache server prints the requested table.
func (o *verb) serverHasRows(server *session.LocalServer) bool {
	return server.Resource.CRDUID != "" && o.style.Format.Name != print.CSV
}

func (o *verb) parameters() url.Values {
	p := url.Values{"q": {o.query.String()}, "scan": {"true"}}
	set := func(name, value string, isSet bool) {
		if isSet {
			p.Set(name, value)
		}
	}
	set("sortBy", o.options.SortBy, o.options.SortBy != "")
	set("limit", strconv.Itoa(o.options.Limit), o.options.Limit > 0)
	set("continue", o.options.Continue, o.options.Continue != "")
	set("count", "true", o.count)
	set("keys", "true", o.keysOnly || o.explain || o.style.Format.Name == print.Name)
	// CSV has dates where rows have ages
	set("rows", "true", o.style.Format.IsTable() && o.style.Format.Name != print.CSV)
	p["groupBy"] = o.aggregation.GroupBy
	for _, m := range o.aggregation.Measures {
		p.Add("compute", m.String())
	}
	return p
}

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
