package query_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
)

// newNumberedQuerier returns a querier over numbered objects. fewCount is the number of objects with the
// team "few"; the other objects have the team "many".
func newNumberedQuerier(t testing.TB, objects, fewCount int) (*query.Querier, query.Source) {
	t.Helper()
	f := functions(t)
	s := newCache(t, dynamicinformer.StorageObject, f)
	all := make([]any, 0, objects)
	for i := range objects {
		team := "many"
		if i%(objects/fewCount) == 0 {
			team = "few"
		}
		u := newWidget(fmt.Sprintf("a/w%05d", i), team, int64(objects-i), "gold")
		u.Object["spec"].(m)["hosts"] = []any{fmt.Sprintf("h%d", i)}
		u.Object["status"] = m{"notAfter": "2026-01-01T00:00:00Z"}
		all = append(all, u)
	}
	noError(t, s.GetIndexer().Replace(all, "1"))
	source := cacheSource{s}
	return query.New(source, f.Indexes()...), source
}

// TestUnproductiveWalksStop verifies that a walk along a sorted index stops early if few of its objects
// match. Then the query sorts the candidates instead.
func TestUnproductiveWalksStop(t *testing.T) {
	const objects = 5000
	f := functions(t)
	s := newCache(t, dynamicinformer.StorageObject, f)
	for i := range objects {
		team := "many"
		if i >= objects-200 { // the last in the order
			team = "few"
		}
		put(t, s, newWidget(fmt.Sprintf("a/w%05d", i), team, int64(i), "gold"))
	}
	querier := query.New(cacheSource{s}, f.Indexes()...)
	for _, descending := range []bool{false, true} {
		options := query.Options{SortBy: "weight", Limit: 5, Descending: descending}
		r, err := querier.Query(t.Context(), query.Eq("team", "few"), options)
		if err != nil || r.Len() != 5 || r.Plan.Examined > 200*18 {
			t.Fatalf("Query, descending %v: %v, want 5 objects after at most 3600 tests\n%v", descending, err,
				r.Plan)
		}
		first := map[bool]string{false: "a/w04800", true: "a/w04999"}[descending]
		if r.Keys()[0] != first {
			t.Errorf("keys, descending %v: %v, want %s first", descending, r.Keys(), first)
		}
		if all := queryAllPages(t, querier, query.Eq("team", "few"), options); len(all) != 200 || all[0] != first {
			t.Errorf("pages, descending %v: %d objects, want 200 with %s first", descending, len(all), first)
		}
	}
}

// workCountingContext is a context that counts the steps of a query between two calls of Err.
type workCountingContext struct {
	context.Context
	steps, maxSteps int
	checks          int
	maxChecks       int // further checks return an error; 0 means no limit
}

func (c *workCountingContext) Err() error {
	c.maxSteps, c.steps = max(c.maxSteps, c.steps), 0
	if c.checks++; c.maxChecks > 0 && c.checks > c.maxChecks {
		return context.DeadlineExceeded
	}
	return nil
}

// accessCountingSource is a source that counts each access as a step of a context.
type accessCountingSource struct {
	query.Source
	ctx *workCountingContext
}

func (s accessCountingSource) Snapshot() query.Snapshot {
	return countingSnapshot{s.Source.Snapshot(), s.ctx}
}

type countingSnapshot struct {
	query.Snapshot
	ctx *workCountingContext
}

func (s countingSnapshot) All(yield func(string, any) bool) {
	s.Snapshot.All(func(key string, item any) bool {
		s.ctx.steps++
		return yield(key, item)
	})
}

func (s countingSnapshot) Index(name string) (query.Index, bool) {
	index, ok := s.Snapshot.Index(name)
	return countingIndex{index, s.ctx}, ok
}

type countingIndex struct {
	query.Index
	ctx *workCountingContext
}

func (c countingIndex) Count(key string) int {
	c.ctx.steps++
	return c.Index.Count(key)
}

func (c countingIndex) Has(key, object string) bool {
	c.ctx.steps++
	return c.Index.Has(key, object)
}

func (c countingIndex) Objects(key string, yield func(string, any) bool) {
	c.Index.Objects(key, func(object string, item any) bool {
		c.ctx.steps++
		return yield(object, item)
	})
}

func (c countingIndex) Keys(from, to string, descending bool, yield func(string, int) bool) {
	c.Index.Keys(from, to, descending, func(key string, count int) bool {
		c.ctx.steps++
		return yield(key, count)
	})
}

// expensiveQueries returns queries that read a complete index or all objects.
func expensiveQueries(t testing.TB) map[string]func(ctx context.Context, querier *query.Querier) error {
	var values []string
	for i := range 3000 {
		values = append(values, "h"+strconv.Itoa(i))
	}
	queryText := func(text string, options query.Options) func(context.Context, *query.Querier) error {
		return func(ctx context.Context, querier *query.Querier) error {
			q, err := query.Parse(text)
			if err != nil {
				return err
			}
			_, err = querier.Query(ctx, q, options)
			return err
		}
	}
	queries := map[string]func(ctx context.Context, querier *query.Querier) error{
		"in": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Query(ctx, query.And(query.In("host", values...), query.Exists("weight")),
				query.Options{})
			return err
		},
		"in is tested": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Query(ctx,
				query.And(query.Exists("weight"), query.Not(query.In("host", values...))), query.Options{})
			return err
		},
		"count": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Count(ctx, query.Or(query.Exists("host"), query.Missing("class")),
				query.Options{AllowScan: true})
			return err
		},
		"values": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Values(ctx, "host", query.Exists("weight"), query.Options{})
			return err
		},
		"aggregate": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Aggregate(ctx, query.Exists("weight"),
				query.Aggregation{GroupBy: []string{"host", ".spec.class"},
					Measures: measures(t, "sum(weight)")}, query.Options{})
			return err
		},
		"searches": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Count(ctx, query.Or(query.Contains("host", "7"), query.Matches("team", "x")),
				query.Options{})
			return err
		},
		"values of all": func(ctx context.Context, querier *query.Querier) error {
			_, err := querier.Values(ctx, "host", query.All(), query.Options{})
			return err
		},
	}
	for i, text := range []string{
		"*", "host", "!host", "host>a && weight>3", `where(".spec.class")`, "team=many && host",
		"host^=h && label('example.com/team')", "team=many",
		"team=few && !(host>h1 && weight>10)", "weight>1 || host",
	} {
		queries[text] = queryText(text, query.Options{AllowScan: true})
		queries[text+" sorted"] = queryText(text, query.Options{AllowScan: true,
			SortBy: []string{"weight", "host", "expiry", "age, weight desc"}[i%4]})
		queries[text+" limited"] = queryText(text,
			query.Options{AllowScan: true, SortBy: []string{"host", "weight"}[i%2], Limit: 3})
	}
	return queries
}

// TestWorkBetweenContextChecks verifies that a query does a bounded number of steps between two checks of its
// context, and stops when the context ends.
func TestWorkBetweenContextChecks(t *testing.T) {
	const bound = 1024
	_, source := newNumberedQuerier(t, 5000, 10)
	for name, runQuery := range expensiveQueries(t) {
		ctx := &workCountingContext{Context: t.Context()}
		querier := query.New(accessCountingSource{source, ctx}, functions(t).Indexes()...)
		if err := runQuery(ctx, querier); err != nil {
			t.Errorf("%s: query without a deadline: %v", name, err)
		}
		if ctx.Err(); ctx.maxSteps > bound {
			t.Errorf("%s: %d steps between two checks of the context, want at most %d", name, ctx.maxSteps,
				bound)
		}
		checks := ctx.checks
		if strings.HasSuffix(name, "limited") || checks < 6 {
			continue
		}
		ctx = &workCountingContext{Context: t.Context(), maxChecks: 3}
		querier = query.New(accessCountingSource{source, ctx}, functions(t).Indexes()...)
		if err := runQuery(ctx, querier); !errors.Is(err, context.DeadlineExceeded) && err == nil ||
			ctx.steps > bound {
			t.Errorf("%s: got the error %v after %d further steps, want DeadlineExceeded after at most %d",
				name,
				err, ctx.steps, bound)
		}
	}
}
