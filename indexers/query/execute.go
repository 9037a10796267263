package query

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/crdcache/crdcache/discovery/crd"
)

// execution is one run of a query on one snapshot.
type execution struct {
	*Querier
	*workMeter
	query    Query
	options  Options
	snapshot Snapshot
	schema   schema
	start    cursor // position to continue from
	order    order

	condition        compiledCondition
	candidateList    candidateList
	hasCandidateList bool // false if all objects are scanned
	cheap            []compiledCondition
	expensive        []compiledCondition
	plan             *Plan

	examined int
}

func (q *Querier) prepare(ctx context.Context, query Query, options Options) (*execution, error) {
	if query == nil {
		return nil, errNoQuery
	}
	snapshot := q.source.Snapshot()
	if s, ok := snapshot.(interface{ Err() error }); ok && s.Err() != nil {
		return nil, s.Err()
	}
	if q.definition != nil {
		version, _ := q.definition.Version(q.version)
		query = WithSchema(query, func() *crd.Schema { return version.Schema })
	}
	exec := &execution{
		Querier: q, workMeter: &workMeter{ctx: ctx, yield: options.Yield, remaining: workBetweenChecks},
		query: query, options: options, snapshot: snapshot, schema: q.schemaOf(snapshot),
	}
	c := compiler{schema: exec.schema, snapshot: exec.snapshot, references: q.references, now: options.Now,
		meter: exec.workMeter}
	if c.now.IsZero() {
		c.now = time.Now()
	}
	var err error
	if exec.condition, err = c.compile(query); err != nil {
		return nil, err
	}
	if exec.order, err = c.compileOrder(options); err != nil {
		return nil, err
	}
	if options.Limit < 0 {
		return nil, errors.New("the limit is negative")
	}
	if exec.start, err = readCursor(options.Continue, query, options, len(exec.order)); err != nil {
		return nil, err
	}
	exec.candidateList, exec.hasCandidateList = chooseCandidates(exec.condition)
	_, isConstant := exec.condition.(constantCondition)
	if !exec.hasCandidateList && !isConstant && !options.AllowScan {
		return nil, &ScanError{Query: query.String(), Objects: exec.snapshot.Len()}
	}
	exec.cheap, exec.expensive = exec.candidateList.remaining(exec.condition)
	planTests(exec.cheap, exec.candidateCount())
	planTests(exec.expensive, exec.candidateCount())
	exec.plan = exec.makePlan(c.warnings)
	exec.warnSchema(Columns(options, Aggregation{}))
	return exec, exec.err
}

// candidateCount is the maximum number of objects to test.
func (e *execution) candidateCount() int {
	if e.hasCandidateList {
		return e.candidateList.maxCount()
	}
	return e.snapshot.Len()
}

// planTests chooses for each condition on an index whether to compare the values of an object or to look the
// object up in the index. The choice depends on the number of objects to test.
func planTests(conds []compiledCondition, objects int) {
	for _, c := range conds {
		switch c := c.(type) {
		case *indexCondition:
			c.chooseTest(objects)
		case negatedCondition:
			planTests([]compiledCondition{c.sub}, objects)
		case groupCondition:
			planTests(c.subs, objects)
		}
	}
}

// candidates calls yield once for each object that passes the cheap tests, until it returns false.
func (e *execution) candidates(yield func(key string, item any) bool) {
	objects := e.snapshot.All
	if e.hasCandidateList {
		objects = e.candidateList.objects
	}
	objects(func(key string, item any) bool {
		if !e.countTested() {
			return false
		}
		return (!allMatch(e.cheap, key, item) || yield(key, item)) && !e.isCancelled()
	})
}

// countTested counts a tested object. It returns false if the query was cancelled.
func (e *execution) countTested() bool {
	e.examined++
	return e.spend(1)
}

func (e *execution) countMatches() (int, error) {
	n := 0
	e.candidates(func(key string, item any) bool {
		if allMatch(e.expensive, key, item) {
			n++
		}
		return true
	})
	return n, e.err
}

func (e *execution) run() (*Result, error) {
	out := &outputPage{execution: e}
	e.sortInto(out)
	if e.err != nil {
		return nil, e.err
	}
	e.plan.Examined, e.plan.Found = e.examined, len(out.entries)
	result := &Result{Freshness: e.snapshot.Freshness(), Plan: e.plan, entries: out.entries}
	if out.truncated {
		result.Continue = cursor{position: out.lastPosition}.encode(e.query, e.options)
	}
	return result, nil
}

// outputPage collects the objects in order, applies the expensive tests, and stops at the limit.
type outputPage struct {
	*execution
	entries      []entry
	lastPosition position // position of the last entry
	truncated    bool     // the limit left out objects
}

// add tests an object and adds it. It returns false if the page is full or the query was cancelled.
func (o *outputPage) add(e entry, pos position) bool {
	if !o.countTested() {
		return false
	}
	if !allMatch(o.expensive, e.key, e.item) || o.isCancelled() {
		return !o.isCancelled()
	}
	if o.options.Limit > 0 && len(o.entries) == o.options.Limit {
		o.truncated = true
		return false
	}
	o.entries = append(o.entries, e)
	o.lastPosition = pos
	return true
}

// workMeter counts the work of one query and checks its context at intervals. It is not safe for concurrent
// use.
type workMeter struct {
	ctx       context.Context
	yield     func(context.Context) error // Options.Yield
	remaining int                         // work until the next check of ctx
	err       error                       // cause of the end of ctx, or the error of yield
}

// workBetweenChecks is the number of cheap steps, such as index lookups, between two checks of the context.
const workBetweenChecks = 256

// bodyWork is the number of steps that a read of an object's JSON counts as. Every read checks the context,
// because objects can be large.
const bodyWork = workBetweenChecks

// spend counts steps. It returns false if the query was cancelled.
func (m *workMeter) spend(steps int) bool {
	if m.remaining -= steps; m.remaining <= 0 && m.err == nil {
		m.remaining = workBetweenChecks
		if m.yield != nil {
			m.err = m.yield(m.ctx)
		}
		if m.ctx.Err() != nil {
			m.err = context.Cause(m.ctx)
		}
	}
	return m.err == nil
}

// stopOn reports whether err is not nil. It stops the query with the first such error, or with the cause if
// the context has ended.
func (m *workMeter) stopOn(err error) bool {
	if err != nil && m.err == nil {
		m.err = cmp.Or(context.Cause(m.ctx), err)
	}
	return err != nil
}

// isCancelled reports whether the query was cancelled, without counting.
func (m *workMeter) isCancelled() bool { return m.err != nil }
