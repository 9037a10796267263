package query

import (
	"slices"
	"time"

	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// compiler compiles queries for one snapshot.
type compiler struct {
	schema     schema
	snapshot   Snapshot
	references *references.TypeGraph // optional
	now        time.Time
	meter      *workMeter
	warnings   []string
}

func (c *compiler) compile(q Query) (compiledCondition, error) {
	switch q := q.(type) {
	case everything:
		return constant(true), nil
	case junction:
		return c.compileJunction(q)
	case negation:
		// push the negation down: an index can answer a negated condition, but not a negated junction
		if j, ok := q.sub.(junction); ok {
			return c.compileJunction(j.negated())
		}
		sub, err := c.compile(q.sub)
		if err != nil {
			return nil, err
		}
		switch sub := sub.(type) {
		case constant:
			return !sub, nil
		case negatedCondition:
			return sub.sub, nil
		}
		return negatedCondition{sub}, nil
	case *comparison:
		k, err := c.compileComparison(q)
		return k, q.position.locate(err)
	case *labelQuery:
		if err := c.checkLabels(q); err != nil {
			return nil, q.position.locate(err)
		}
		return labelCondition{naming.CompileLabels(q.selector), q.String(), c.meter,
			func() []*indexCondition { return c.labelConditions(q.selector) }}, nil
	case *condition:
		t, err := q.compile()
		if err == nil {
			err = checkStored(c.snapshot, t)
		}
		return bodyCondition{newItemTester(t, c.meter), q.String(), c.meter}, q.locate(err)
	case *referenceQuery:
		linked, err := c.compileLinking(q)
		return linked, q.position.locate(err)
	}
	return nil, errNoQuery
}

// compileJunction compiles, flattens and simplifies a junction.
func (c *compiler) compileJunction(q junction) (compiledCondition, error) {
	out := groupCondition{or: q.or}
	isConstant := false
	for _, sub := range q.subs {
		part, err := c.compile(sub)
		if err != nil {
			return nil, err
		}
		switch part := part.(type) {
		case constant:
			isConstant = isConstant || bool(part) == q.or
			continue
		case groupCondition:
			if part.or == q.or {
				out.subs = append(out.subs, part.subs...)
				continue
			}
		}
		out.subs = append(out.subs, part)
	}
	if !q.or {
		out.subs = c.joinSpans(out.subs)
	}
	switch {
	case isConstant:
		return constant(q.or), nil
	case len(out.subs) == 0:
		return constant(!q.or), nil
	case len(out.subs) == 1:
		return out.subs[0], nil
	}
	out.query = q.String()
	slices.SortStableFunc(out.subs, func(a, b compiledCondition) int { return int(a.cost()) - int(b.cost()) })
	return out, nil
}

// joinSpans intersects spans of the same index if an object has at most one value there. With several values,
// each could be in a different span.
func (c *compiler) joinSpans(subs []compiledCondition) []compiledCondition {
	at := map[string]int{}
	out := subs[:0:0]
	for _, sub := range subs {
		k, ok := sub.(*indexCondition)
		if !ok || k.exact != nil || !k.index.isSingleValued() {
			out = append(out, sub)
			continue
		}
		i, duplicate := at[k.index.name]
		if !duplicate {
			at[k.index.name] = len(out)
			out = append(out, k)
			continue
		}
		first := out[i].(*indexCondition)
		joined := &indexCondition{index: k.index, meter: c.meter, method: testSet,
			span:  first.span.intersect(k.span),
			query: first.query + " && " + k.query}
		joined.estimate(c.snapshot.Len())
		out[i] = joined
	}
	return out
}

func (c *compiler) compileComparison(q *comparison) (compiledCondition, error) {
	index, err := c.schema.open(c.snapshot, q.index)
	if err != nil {
		return nil, err
	}
	index.now = c.now
	k := &indexCondition{index: index, query: q.String(), meter: c.meter}
	switch q.op {
	case opEqual, opIn:
		k.exact, err = c.exactKeys(index, q.values)
	case opContains, opMatches, opWithin:
		k.exact, err = c.searchedKeys(index, q)
	default:
		k.method = testSet
		k.span, err = index.span(q)
		err = index.suggestRelativeTime(err)
	}
	if err != nil {
		return nil, err
	}
	c.checkComparison(index, q)
	k.estimate(c.snapshot.Len())
	return k, nil
}

func (c *compiler) exactKeys(index openedIndex, values []value) ([]string, error) {
	keys := make([]string, 0, len(values))
	seenKeys := make(map[string]struct{}, len(values))
	for _, v := range values {
		if !c.meter.spend(1) {
			return nil, c.meter.err
		}
		key, err := index.key(v)
		if err != nil {
			return nil, index.suggestRelativeTime(index.suggestPrefix(v, err))
		}
		if _, duplicate := seenKeys[key]; !duplicate {
			seenKeys[key] = struct{}{}
			keys = append(keys, key)
		}
	}
	return keys, nil
}
