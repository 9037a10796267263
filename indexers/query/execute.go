package query

import (
	"context"
	"errors"
)

// execution is one query on one snapshot.
type execution struct {
	ctx      context.Context
	query    Query
	options  Options
	snapshot Snapshot
	schema   schema
	from     token // where to go on
	sort     *access

	cond   cond
	driver driver
	driven bool // there is a driver; else all objects are looked at
	cheap  []cond
	dear   []cond
	plan   *Plan

	tested int
	err    error // of ctx
}

// prepare does all that can fail.
func (q *Querier) prepare(ctx context.Context, query Query, options Options) (*execution, error) {
	x := &execution{ctx: ctx, query: query, options: options, snapshot: q.source.Snapshot(), schema: q.schema}
	var err error
	if x.cond, err = q.schema.compile(x.snapshot, query); err != nil {
		return nil, err
	}
	if options.SortBy != "" {
		index, err := q.schema.open(x.snapshot, options.SortBy)
		if err != nil {
			return nil, err
		}
		if !index.sorted() {
			return nil, &UnsortedError{options.SortBy, "sorting"}
		}
		x.sort = &index
	} else if options.Descending {
		return nil, errors.New("a descending order needs an index to sort by")
	}
	if options.Limit < 0 {
		return nil, errors.New("the limit is negative")
	}
	if x.from, err = readToken(options.Continue, query, options); err != nil {
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
	if x.driven {
		rereadFew(x.cheap, x.driver.count())
	}
	x.plan = x.makePlan()
	return x, nil
}

// rereadFactor is how much dearer it is to compute the keys of an object than to take one from an index.
const rereadFactor = 16

// rereadFew has conditions on spans of an index look at the objects themselves where these are few.
func rereadFew(conds []cond, objects int) {
	for _, c := range conds {
		switch c := c.(type) {
		case *keyed:
			c.reread = c.exact == nil && c.index.functions != nil && objects*rereadFactor < c.count
		case not:
			rereadFew([]cond{c.sub}, objects)
		case several:
			rereadFew(c.subs, objects)
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
		return !holdAll(x.cheap, key, item) || yield(key, item)
	})
}

// goOn counts an object that is looked at, and asks now and then whether anybody still waits for the answer.
func (x *execution) goOn() bool {
	x.tested++
	if x.tested%1024 == 0 && x.err == nil {
		x.err = context.Cause(x.ctx)
		if x.ctx.Err() == nil {
			x.err = nil
		}
	}
	return x.err == nil
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
	if x.sort != nil {
		x.byIndex(out)
	} else {
		x.byKey(out)
	}
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
	last    token // where the last entry is
	more    bool  // there are more objects than the limit
}

// add takes an object; it is false when no more are wanted.
func (o *output) add(e entry, at token) bool {
	if !o.goOn() {
		return false
	}
	if !holdAll(o.dear, e.key, e.item) {
		return true
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
	return o.last.write(o.query, o.options)
}
