package query

import (
	"cmp"
	"context"
	"errors"
	"time"
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

	cond      compiledCondition
	driver    driver // the index lookup that yields the candidates
	hasDriver bool   // false if all objects are scanned
	cheap     []compiledCondition
	expensive []compiledCondition
	plan      *Plan

	examined int
}

// prepare compiles and plans a query.
func (q *Querier) prepare(ctx context.Context, query Query, options Options) (*execution, error) {
	if query == nil {
		return nil, errNoQuery
	}
	snapshot := q.source.Snapshot()
	if s, ok := snapshot.(interface{ Err() error }); ok && s.Err() != nil {
		return nil, s.Err()
	}
	x := &execution{
		Querier: q, workMeter: &workMeter{ctx: ctx, yield: options.Yield, remaining: workBetweenChecks},
		query: query, options: options, snapshot: snapshot, schema: q.schemaOf(snapshot),
	}
	c := compiler{schema: x.schema, snapshot: x.snapshot, references: q.references, now: options.Now,
		meter: x.workMeter}
	if c.now.IsZero() {
		c.now = time.Now()
	}
	var err error
	if x.cond, err = c.compile(query); err != nil {
		return nil, err
	}
	if x.order, err = c.compileOrder(options); err != nil {
		return nil, err
	}
	if options.Limit < 0 {
		return nil, errors.New("the limit is negative")
	}
	if x.start, err = readCursor(options.Continue, query, options, len(x.order)); err != nil {
		return nil, err
	}
	x.driver, x.hasDriver = chooseDriver(x.cond)
	if _, matchesAll := x.cond.(constant); !x.hasDriver && !matchesAll && !options.AllowScan {
		return nil, &ScanError{Query: query.String(), Objects: x.snapshot.Len()}
	}
	x.cheap, x.expensive = x.driver.remaining(x.cond)
	planTests(x.cheap, x.candidateCount())
	planTests(x.expensive, x.candidateCount())
	x.plan = x.makePlan(c.warnings)
	x.warnSchema(Columns(options, Aggregation{}))
	return x, x.err
}

// candidateCount is the maximum number of objects to test.
func (x *execution) candidateCount() int {
	if x.hasDriver {
		return x.driver.count()
	}
	return x.snapshot.Len()
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
func (x *execution) candidates(yield func(key string, item any) bool) {
	objects := x.snapshot.All
	if x.hasDriver {
		objects = x.driver.objects
	}
	objects(func(key string, item any) bool {
		if !x.countTested() {
			return false
		}
		return (!allHold(x.cheap, key, item) || yield(key, item)) && !x.ended()
	})
}

// countTested counts a tested object. It returns false if the query was cancelled.
func (x *execution) countTested() bool {
	x.examined++
	return x.spend(1)
}

func (x *execution) count() (int, error) {
	n := 0
	x.candidates(func(key string, item any) bool {
		if allHold(x.expensive, key, item) {
			n++
		}
		return true
	})
	return n, x.err
}

func (x *execution) run() (*Result, error) {
	out := &output{execution: x}
	x.sortInto(out)
	if x.err != nil {
		return nil, x.err
	}
	x.plan.Examined, x.plan.Found = x.examined, len(out.entries)
	return &Result{Freshness: x.snapshot.Freshness(), Plan: x.plan, Continue: out.cursor(),
		entries: out.entries}, nil
}

// output collects the objects in order, applies the expensive tests, and stops at the limit.
type output struct {
	*execution
	entries   []entry
	last      position // position of the last entry
	truncated bool     // the limit left out objects
}

// add adds an object that passes. It returns false if the output is full or the query was cancelled.
func (o *output) add(e entry, at position) bool {
	if !o.countTested() {
		return false
	}
	if !allHold(o.expensive, e.key, e.item) || o.ended() {
		return !o.ended()
	}
	if o.options.Limit > 0 && len(o.entries) == o.options.Limit {
		o.truncated = true
		return false
	}
	o.entries = append(o.entries, e)
	o.last = at
	return true
}

// cursor returns the continue token behind the last object.
func (o *output) cursor() string {
	if !o.truncated {
		return ""
	}
	return cursor{position: o.last}.encode(o.query, o.options)
}

// workMeter counts the work of one query and checks its context at intervals. A nil meter never stops a
// query. It is not safe for concurrent use.
type workMeter struct {
	ctx       context.Context
	yield     func(context.Context) error // Options.Yield
	remaining int                         // work until the next check of ctx
	err       error                       // cause of the end of ctx, or the error of yield
}

// workBetweenChecks is the number of cheap steps, such as index lookups, between two checks of the context.
const workBetweenChecks = 256

// bodyWork is the work of reading an object's JSON. It makes every read check the context, because objects
// can be large.
const bodyWork = workBetweenChecks

// spend counts steps. It returns false if the query was cancelled.
func (m *workMeter) spend(steps int) bool {
	if m == nil {
		return true
	}
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

func (m *workMeter) context() context.Context {
	if m == nil {
		return context.Background()
	}
	return m.ctx
}

// stopOn reports whether err is not nil. It stops the query with the first such error, or with the cause if
// the context has ended.
func (m *workMeter) stopOn(err error) bool {
	if err != nil && m != nil && m.err == nil {
		m.err = cmp.Or(context.Cause(m.ctx), err)
	}
	return err != nil
}

// ended reports whether the query was cancelled, without counting.
func (m *workMeter) ended() bool { return m != nil && m.err != nil }
