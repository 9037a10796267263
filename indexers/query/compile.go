package query

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"

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
	case matchAll:
		return constantCondition(true), nil
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
		case constantCondition:
			return !sub, nil
		case negatedCondition:
			return sub.sub, nil
		}
		return negatedCondition{sub}, nil
	case *comparison:
		condition, err := c.compileComparison(q)
		return condition, q.position.locate(err)
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
		tester := &itemTester{filter: t, meter: c.meter}
		tester.matchRead = tester.matchJSON
		return bodyCondition{tester, q.String(), c.meter}, q.locate(err)
	case *celQuery:
		e, err := q.compile()
		if err == nil {
			err = checkStored(c.snapshot, e)
		}
		return celCondition{e, q.String(), c.meter}, q.locate(err)
	case *referenceQuery:
		condition, err := c.compileReference(q)
		return condition, q.position.locate(err)
	}
	return nil, errNoQuery
}

func (c *compiler) compileJunction(q junction) (compiledCondition, error) {
	group := groupCondition{isOr: q.isOr}
	isConstant := false
	for _, sub := range q.subs {
		part, err := c.compile(sub)
		if err != nil {
			return nil, err
		}
		switch part := part.(type) {
		case constantCondition:
			isConstant = isConstant || bool(part) == q.isOr
			continue
		case groupCondition:
			if part.isOr == q.isOr {
				group.subs = append(group.subs, part.subs...)
				continue
			}
		}
		group.subs = append(group.subs, part)
	}
	if !q.isOr {
		group.subs = c.joinSpans(group.subs)
	}
	switch {
	case isConstant:
		return constantCondition(q.isOr), nil
	case len(group.subs) == 0:
		return constantCondition(!q.isOr), nil
	case len(group.subs) == 1:
		return group.subs[0], nil
	}
	group.query = q.String()
	slices.SortStableFunc(group.subs,
		func(a, b compiledCondition) int { return int(a.cost()) - int(b.cost()) })
	return group, nil
}

// joinSpans intersects spans of the same index if an object has at most one value there. With several values,
// each could be in a different span.
func (c *compiler) joinSpans(subs []compiledCondition) []compiledCondition {
	positionByIndex := map[string]int{}
	joinedSubs := subs[:0:0]
	for _, sub := range subs {
		cond, ok := sub.(*indexCondition)
		if !ok || cond.exactKeys != nil || !cond.index.isSingleValued() {
			joinedSubs = append(joinedSubs, sub)
			continue
		}
		i, duplicate := positionByIndex[cond.index.name]
		if !duplicate {
			positionByIndex[cond.index.name] = len(joinedSubs)
			joinedSubs = append(joinedSubs, cond)
			continue
		}
		first := joinedSubs[i].(*indexCondition)
		joined := &indexCondition{index: cond.index, meter: c.meter, test: testSet,
			keySpan: first.keySpan.intersect(cond.keySpan), query: first.query + " && " + cond.query}
		joined.estimate(c.snapshot.Len())
		joinedSubs[i] = joined
	}
	return joinedSubs
}

func (c *compiler) compileComparison(q *comparison) (compiledCondition, error) {
	index, err := c.schema.open(c.snapshot, q.index)
	if err != nil {
		return nil, err
	}
	index.now = c.now
	cond := &indexCondition{index: index, query: q.String(), meter: c.meter}
	switch {
	case q.op == opEqual, q.op == opIn:
		cond.exactKeys, err = c.exactKeys(index, q.values)
	case q.op == opContains, q.op == opMatches, q.op == opWithin && !index.isSorted():
		cond.exactKeys, err = c.matchingKeys(index, q)
	default:
		cond.test = testSet
		cond.keySpan, err = index.comparisonSpan(q)
		err = index.suggestRelativeTime(err)
	}
	if err != nil {
		return nil, err
	}
	c.checkComparison(index, q)
	cond.estimate(c.snapshot.Len())
	return cond, nil
}

func (c *compiler) exactKeys(index openedIndex, values []value) ([]string, error) {
	keys := make([]string, 0, len(values))
	seenKeys := make(sets.Set[string], len(values))
	for _, v := range values {
		if !c.meter.spend(1) {
			return nil, c.meter.err
		}
		key, err := index.key(v)
		if err != nil {
			return nil, index.suggestRelativeTime(index.suggestPrefix(v, err))
		}
		if !seenKeys.Has(key) {
			keys = append(keys, key)
		}
		seenKeys.Insert(key)
	}
	return keys, nil
}

// labelConditions returns a condition for each index that can narrow a selector. Each condition matches at
// least the objects that the selector selects.
func (c *compiler) labelConditions(selector labels.Selector) []*indexCondition {
	var out []*indexCondition
	requirements, _ := selector.Requirements() // there are none if the selector selects nothing
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
		default:
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(c.schema)) {
			if condition := c.labelCondition(name, r); condition != nil {
				out = append(out, condition)
			}
		}
	}
	return out
}

// labelCondition returns the condition on an index for a requirement; nil if the index may lack some of the
// objects.
func (c *compiler) labelCondition(name string, r labels.Requirement) *indexCondition {
	cond := &indexCondition{exactKeys: []string{}, meter: c.meter}
	var values []value
	for _, v := range r.Values().List() {
		key, ok := c.schema[name].LabelKey(r.Key(), v)
		if !ok {
			return nil
		}
		if !slices.Contains(cond.exactKeys, key) {
			cond.exactKeys = append(cond.exactKeys, key)
			values = append(values, value{parts: c.schema[name].Parts(key)})
		}
	}
	var err error
	if cond.index, err = c.schema.open(c.snapshot, name); err != nil {
		return nil // declared, but not built yet
	}
	q := comparison{op: opIn, index: name, values: values}
	if len(values) == 1 {
		q.op = opEqual
	}
	cond.query = q.String()
	cond.estimate(c.snapshot.Len())
	return cond
}

// referenceCondition matches objects by the keys that the reference graph returned.
type referenceCondition struct {
	keys     []string
	keySet   sets.Set[string]
	snapshot Snapshot
	query    string
	meter    *workMeter
}

func (r *referenceCondition) cost() cost    { return costLookup }
func (r *referenceCondition) text() string  { return r.query }
func (r *referenceCondition) size() int     { return len(r.keys) }
func (r *referenceCondition) repeats() bool { return false }

func (r *referenceCondition) matches(object string, _ any) bool {
	return r.keySet.Has(object) && r.meter.spend(1)
}

// objects skips keys that are not in the snapshot: the graph can be ahead of the snapshot or behind it.
func (r *referenceCondition) objects(yield func(object string, item any) bool) {
	for _, key := range r.keys {
		item, ok := r.snapshot.Get(key)
		if !r.meter.spend(1) || ok && !yield(key, item) {
			return
		}
	}
}

func (c *compiler) compileReference(q *referenceQuery) (compiledCondition, error) {
	if c.references == nil {
		return nil, ErrNoReferences
	}
	if names := c.references.Names(); q.kind != referredBy && q.reference != "" &&
		!slices.Contains(names, q.reference) {
		return nil, &UnknownReferenceError{Name: q.reference, Known: names}
	}
	cond := &referenceCondition{snapshot: c.snapshot, query: q.String(), meter: c.meter}
	switch q.kind {
	case refDangling:
		cond.keys = c.references.Dangling(q.reference)
		for _, u := range c.references.Unchecked(q.reference) {
			c.addWarning("%s: %s, so that they do not count as dangling", q, u)
		}
	case refersTo:
		cond.keys = c.references.KeysReferringTo(q.object, q.reference)
		if n := c.references.CountRecreated(q.object, q.reference); n > 0 {
			c.addWarning("%s: %d more refer to another object of that name, with another UID", q, n)
		}
	case referredBy:
		cond.keys = c.references.KeysReferredBy(q.object, q.reference)
	}
	if q.kind != refDangling && len(cond.keys) == 0 {
		if reason := c.references.ExplainEmpty(q.object, q.kind == referredBy); reason != "" {
			c.addWarning("%s: %s", q, reason)
		}
	}
	cond.keySet = sets.New(cond.keys...)
	return cond, nil
}

var _ candidateSource = (*referenceCondition)(nil)
