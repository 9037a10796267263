package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/display"
	"github.com/crdcache/crdcache/serving/readapi"
)

const queryPrefix = "/query"

// QueryPath returns the path for queries of a type, such as "/query/apis/example.com/v1/widgets". An empty
// namespace means all.
//
// The query parameters of a GET are:
//
//	q              the query as text (see package query); without it, all objects
//	labelSelector  as for lists
//	fieldSelector  with watch alone
//	sortBy, descending, limit, continue
//	               see query.Options
//	scan           true allows queries that no index supports
//	keys           true returns keys instead of objects
//	rows           true returns table rows instead of objects, for custom resources
//	count          true returns only the number of objects
//	values         the name of an index: returns its values with the number of objects
//	groupBy, compute
//	               groups, and the aggregates of each; can be repeated
//	explain        true returns the plan without executing the query
//	watch          true returns a watch of the query, with the events and parameters of the Kubernetes API
//
// The answer is an [Answer], and errors are Status objects. Answers are consistent reads, like a list without
// resourceVersion. With "Cache-Control: max-stale" the answer is the state of the cache.
func QueryPath(group, version, namespace, resource string) string {
	return queryPrefix + apiPath(group, version, namespace, resource)
}

func apiPath(group, version, namespace, resource string) string {
	path := "/apis/" + group + "/" + version
	if group == "" {
		path = "/api/" + version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

func (s *Server) serveQuery(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(ServedHeader, servedByCache)
	if err := s.query(w, r); err != nil && r.Context().Err() == nil {
		readapi.WriteError(w, r, err)
	}
}

// query answers a query. Errors are returned before anything is written.
func (s *Server) query(w http.ResponseWriter, r *http.Request) error {
	kubeRequest := r.Clone(r.Context())
	kubeRequest.URL.Path = strings.TrimPrefix(r.URL.Path, queryPrefix)
	request, ok := readapi.ParseRequest(kubeRequest)
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return apierrors.NewMethodNotSupported(request.GVR.GroupResource(), strings.ToLower(r.Method))
	case !ok || request.Name != "":
		return apierrors.NewBadRequest(fmt.Sprintf("%s names no type: a query is on %s", r.URL.Path,
			QueryPath("GROUP", "VERSION", "", "RESOURCE")))
	}
	c, err := s.queriedCollection(request)
	if err != nil {
		return err
	}
	params := r.URL.Query()
	q, err := parseQuery(params.Get("q"))
	if err != nil {
		return err
	}
	q = query.WithSchema(q, c.schema)
	if request.Verb == "watch" || request.Verb == "watch-list" {
		return c.watchQuery(w, kubeRequest, request, q)
	}
	if selector := params.Get("fieldSelector"); selector != "" {
		return apierrors.NewBadRequest(
			fmt.Sprintf("fieldSelector is %q: a query has it for watches alone; say it in q", selector))
	}
	if !allowsStale(r) {
		if err := c.waitUntilFresh(r.Context()); err != nil {
			return err
		}
	}
	concealPlan := request.Namespace != "" && c.server.options.ConcealPlans
	if concealPlan && params.Get("explain") == "true" {
		return apierrors.NewBadRequest("explain: a plan counts the objects of all namespaces, so it is available only for queries of all namespaces")
	}
	answer, err := c.answerInTimeSlice(r.Context(), q, request.Namespace, params)
	if err != nil {
		return apiError(err)
	}
	if concealPlan {
		answer.Plan, answer.Warnings = "", nil
	}
	c.typ.Warn(w.Header(), c.gvr.Version)
	if answer.rows != nil {
		c.warnDroppedColumns(w.Header())
	}
	return c.server.writeAnswer(w, answer)
}

// restrictQuery restricts a query to a selector and a namespace. Both can be empty.
func restrictQuery(q query.Query, selector, namespace string) (query.Query, error) {
	if selector != "" {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		q = query.Narrow(q, query.Selector(parsed))
	}
	if namespace != "" {
		q = query.Narrow(q, query.Namespace(namespace))
	}
	return q, nil
}

func (s *Server) queriedCollection(request readapi.Request) (*collection, error) {
	gr := request.GVR.GroupResource()
	cache := s.cacheOf(gr)
	if cache == nil || cache.gvr != request.GVR {
		return nil, apierrors.NewNotFound(gr, "") // clients interpret it as a type that is not served
	}
	h, status := cache.informer.History(), cache.informer.Status()
	switch {
	case mayHaveLostAccess(status):
		return nil, apierrors.NewForbidden(gr, "", errors.New(status.Message))
	case h.Namespace != "" && h.Namespace != request.Namespace:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("query %s: the cache has only the namespace %s",
			gr, h.Namespace))
	case !h.Synced:
		return nil, apierrors.NewServiceUnavailable(status.String())
	}
	if c := cache.collection(); c != nil {
		return c, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s: its definition is not known yet", gr))
}

// schema returns the schema of the objects, or nil.
func (c *collection) schema() (s *crd.Schema) {
	if v := c.typ.Version(c.gvr.Version); v == nil || json.Unmarshal(v.Schema, &s) != nil {
		return nil
	}
	return s
}

func parseQuery(text string) (query.Query, error) {
	if text == "" {
		return query.All(), nil
	}
	q, err := query.Parse(text)
	if err != nil {
		return nil, apiError(err)
	}
	if follows, _ := query.UsesReferences(q); follows {
		return nil, apierrors.NewBadRequest(
			"queries about references are not answered here: they take all types that refer, and are referred to")
	}
	return q, nil
}

func apiError(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var queryErr *query.Error
	if errors.As(err, &queryErr) {
		return apierrors.NewBadRequest(fmt.Sprintf("q: %v\n%s", queryErr, queryErr.Caret()))
	}
	return apierrors.NewBadRequest(err.Error())
}

// answerInTimeSlice is answer within a time slice. The answer is written after the time slice.
func (c *collection) answerInTimeSlice(ctx context.Context, q query.Query, namespace string,
	params url.Values) (*pendingAnswer, error) {
	options, err := queryOptions(params)
	if err != nil {
		return nil, err
	}
	timeSlice := readapi.NewTimeSlice(c.server.options.Handler.Scheduler)
	if err := timeSlice.Begin(ctx); err != nil {
		return nil, err
	}
	defer timeSlice.End()
	options.Yield = timeSlice.Yield
	if q, err = restrictQuery(q, params.Get("labelSelector"), namespace); err != nil {
		return nil, err
	}
	return c.answer(ctx, q, params, options)
}

// fixedSource is a source with the content and the indexes of one moment, so that the parts of an answer
// agree.
type fixedSource struct{ snapshot query.Snapshot }

func (s fixedSource) Snapshot() query.Snapshot { return s.snapshot }

func (c *collection) answer(ctx context.Context, q query.Query, params url.Values,
	options query.Options) (*pendingAnswer, error) {
	querier := query.New(fixedSource{c.typeCache.Snapshot()})
	pending := &pendingAnswer{Answer: Answer{Kind: AnswerKind}}
	switch {
	case params.Get("explain") == "true":
		plan, err := querier.Explain(q, options)
		pending.setState(querier.Freshness(), plan)
		return pending, err
	case params.Get("count") == "true":
		n, err := querier.Count(ctx, q, options)
		pending.Count = &n
		plan, _ := querier.Explain(q, options) // for its warnings; the count has succeeded
		pending.setState(querier.Freshness(), plan)
		return pending, err
	case params.Get("values") != "":
		values, err := querier.Values(ctx, params.Get("values"), q, options)
		pending.Values = values
		pending.setState(querier.Freshness(), nil)
		return pending, err
	case params.Has("groupBy") || params.Has("compute"):
		return pending, pending.group(ctx, querier, q, params, options)
	}
	result, err := querier.Query(ctx, q, options)
	if err != nil {
		return nil, err
	}
	pending.setState(result.Freshness, result.Plan)
	pending.Continue = result.Continue
	switch {
	case params.Get("keys") == "true":
		pending.Keys = result.Keys()
	case params.Get("rows") == "true" && c.typ.Custom:
		pending.result, pending.rows = result, newRowBuilder(c, c.server.options.Handler.Now())
		pending.Columns = display.Definitions(pending.rows.columns)
	default:
		pending.result = result
	}
	return pending, nil
}

func queryOptions(params url.Values) (query.Options, error) {
	options := query.Options{
		SortBy: params.Get("sortBy"), Descending: params.Get("descending") == "true",
		Continue: params.Get("continue"), AllowScan: params.Get("scan") == "true",
	}
	if text := params.Get("limit"); text != "" {
		var err error
		if options.Limit, err = strconv.Atoi(text); err != nil || options.Limit < 0 {
			return options, apierrors.NewBadRequest(
				fmt.Sprintf("limit is %q: give a number that is not negative", text))
		}
	}
	return options, nil
}

func (a *pendingAnswer) group(ctx context.Context, querier *query.Querier, q query.Query, params url.Values,
	options query.Options) error {
	aggregation := query.Aggregation{GroupBy: params["groupBy"]}
	for _, text := range params["compute"] {
		measure, err := query.ParseMeasure(text)
		if err != nil {
			return err
		}
		aggregation.Measures = append(aggregation.Measures, measure)
	}
	groups, err := querier.Aggregate(ctx, q, aggregation, options)
	if err != nil {
		return err
	}
	a.setState(groups.Freshness, groups.Plan)
	a.Groups = groups.Groups
	return nil
}
