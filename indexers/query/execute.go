package query

import (
	"context"
	"errors"
	"time"
)

// execution is one query on one snapshot.
type execution struct {
	*meter
	query    Query
	options  Options
	snapshot Snapshot
	schema   schema
	misfits  func(query Query, columns []string) []string
	types    func(path string) string // of the schema
	from     token                    // where to go on
	order    order

	cond   cond
	driver driver
	driven bool // there is a driver; else all objects are looked at
	cheap  []cond
	dear   []cond
	plan   *Plan

	tested int
}

// prepare does all that can fail.
func (q *Querier) prepare(ctx context.Context, query Query, options Options) (*execution, error) {
	if query == nil {
		return nil, errNoQuery
	}
	snapshot := q.source.Snapshot()
	x := &execution{
		meter: &meter{ctx: ctx, yield: options.Yield,
			left: workBetweenChecks}, query: query, options: options,
		snapshot: snapshot, schema: q.schemaOf(snapshot), misfits: q.misfits, types: q.types,
	}
	c := compiler{schema: x.schema, snapshot: x.snapshot, references: q.references, now: options.Now,
		meter: x.meter}
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
	if x.from, err = readToken(options.Continue, query, options, len(x.order)); err != nil {
		return nil, err
	}
	x.driver, x.driven = drivers(x.cond)
	if _, all := x.cond.(constant); !x.driven && !all && !options.AllowScan {
		return nil, &ScanError{Query: query.String(), Objects: x.snapshot.Len()}
	}
	x.cheap, x.dear = x.driver.rest(x.cond)
	if !x.driven {
		x.cheap, x.dear = driver{}.rest(x.cond)
	}
	planTests(x.cheap, x.candidateCount())
	planTests(x.dear, x.candidateCount())
	x.plan = x.makePlan(c.warnings)
	x.misfit(Columns(options, Aggregation{}))
	return x, x.err
}

// candidateCount is how many objects are looked at, at most.
func (x *execution) candidateCount() int {
	if x.driven {
		return x.driver.count()
	}
	return x.snapshot.Len()
}

// planTests chooses how conditions on indexes are tested of some objects.
func planTests(conds []cond, objects int) {
	for _, c := range conds {
		switch c := c.(type) {
		case *keyed:
			c.plan(objects)
		case not:
			planTests([]cond{c.sub}, objects)
		case several:
			planTests(c.subs, objects)
		}
	}
}

// candidates calls yield for each object that passes all cheap tests, once, until it returns false.
func (x *execution) candidates(yield func(key string, item any) bool) {
	all := x.snapshot.All
	if x.driven {
		all = x.driver.objects
	}
	all(func(key string, item any) bool {
		if !x.goOn() {
			return false
		}
		return (!holdAll(x.cheap, key, item) || yield(key, item)) && !x.ended()
	})
}

// goOn counts an object that is looked at. It is false once nobody waits for the answer.
func (x *execution) goOn() bool {
	x.tested++
	return x.work(1)
}

func (x *execution) count() (int, error) {
	n := 0
	x.candidates(func(key string, item any) bool {
		if holdAll(x.dear, key, item) {
			n++
		}
		return true
	})
	return n, x.err
}

func (x *execution) run() (*Result, error) {
	out := &output{execution: x}
	x.arrange(out)
	if x.err != nil {
		return nil, x.err
	}
	x.plan.Examined, x.plan.Found = x.tested, len(out.entries)
	return &Result{Stamp: x.snapshot.Stamp(), Plan: x.plan, Continue: out.token(), entries: out.entries}, nil
}

// output takes the objects in their order, does the dear tests, and says when it is enough.
type output struct {
	*execution
	entries []entry
	last    place // where the last entry is
	more    bool  // there are more objects than the limit
}

// add takes an object; it is false when no more are wanted.
func (o *output) add(e entry, at place) bool {
	if !o.goOn() {
		return false
	}
	if !holdAll(o.dear, e.key, e.item) || o.ended() {
		return !o.ended()
	}
	if o.options.Limit > 0 && len(o.entries) == o.options.Limit {
		o.more = true
		return false
	}
	o.entries = append(o.entries, e)
	o.last = at
	return true
}

// token leads to what comes behind the last object.
func (o *output) token() string {
	if !o.more {
		return ""
	}
	return token{place: o.last}.write(o.query, o.options)
}
