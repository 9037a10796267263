package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/naming"
)

// compiledCondition is a condition compiled for one snapshot.
type compiledCondition interface {
	// holds tests one object.
	holds(key string, item any) bool
	// cost ranks conditions: cheap ones are tested first.
	cost() cost
	// text returns the condition in the text syntax.
	text() string
}

type cost uint8

const (
	costNothing cost = iota
	costLookup       // in an index
	costLabels
	costSet  // in a set that has to be built from an index first
	costBody // reads the object
)

// constant matches all objects or none.
type constant bool

func (c constant) holds(string, any) bool { return bool(c) }
func (c constant) cost() cost             { return costNothing }

func (c constant) text() string {
	if c {
		return "*"
	}
	return "!*"
}

// indexCondition matches objects with certain keys in an index.
type indexCondition struct {
	index  openedIndex
	exact  []string // the keys, if not nil
	span   span     // otherwise the range of keys, without indexers.Null
	count  int      // number of matching objects: an upper bound, or an estimate
	query  string
	method keyTest
	meter  *workMeter
	// set is built by the first testSet, exactSet by the first testOwnKeys.
	set, exactSet map[string]struct{}
}

// keyTest is a way to test an object.
type keyTest uint8

const (
	testEach    keyTest = iota // look the object up under each exact key
	testSet                    // look the object up in the set of all matching objects
	testOwnKeys                // compare the object's own keys
)

func (k *indexCondition) text() string  { return k.query }
func (k *indexCondition) size() int     { return k.count }
func (k *indexCondition) repeats() bool { return !k.index.isSingleValued() && len(k.exact) != 1 }

func (k *indexCondition) cost() cost {
	if k.exact != nil && len(k.exact) <= maxLookups {
		return costLookup
	}
	return costSet
}

// maxLookups is the maximum number of exact keys for which testEach is always chosen.
const maxLookups = 16

// keys calls yield for each matching key in the index with the number of its objects.
func (k *indexCondition) keys(yield func(key string, count int) bool) {
	for _, key := range k.exact {
		if n := k.index.Count(key); !k.meter.spend(1) || n > 0 && !yield(key, n) {
			return
		}
	}
	if k.exact != nil || k.span.empty {
		return
	}
	null := !k.index.composite()
	each := func(key string, count int) bool {
		return k.meter.spend(1) && (null && key == indexers.Null || yield(key, count))
	}
	if k.span == (span{}) {
		k.index.each(each)
		return
	}
	k.index.Keys(k.span.low, k.span.high, false, each)
}

// maxCountedKeys is the number of keys above which objects are estimated instead of counted.
const maxCountedKeys = 128

func (k *indexCondition) estimate(objects int) {
	counter, ok := k.index.Index.(interface {
		CountKeys(from, to string) (int, bool)
	})
	if ok && k.exact == nil && !k.span.empty {
		if n, ok := counter.CountKeys(k.span.low, k.span.high); ok && n > maxCountedKeys {
			// the average number per key times the keys, but not more than all objects
			k.count = min(n*(objects/max(k.index.Len(), 1)+1), max(objects, n))
			return
		}
	}
	k.keys(func(_ string, count int) bool {
		k.count += count
		return true
	})
}

// chooseTest chooses the cheapest test for a number of objects.
func (k *indexCondition) chooseTest(objects int) {
	k.method = testSet
	best := k.count + len(k.exact)
	if k.exact != nil && (len(k.exact) <= maxLookups || objects*len(k.exact) < best) {
		k.method, best = testEach, min(best, objects*len(k.exact))
		if len(k.exact) <= maxLookups {
			return
		}
	}
	if k.index.functions != nil && objects*k.index.keyCost() < best {
		k.method = testOwnKeys
	}
}

func (k *indexCondition) matchesKey(key string) bool {
	if k.exact != nil {
		_, ok := k.exactSet[key]
		return ok
	}
	return (key != indexers.Null || k.index.composite()) && k.span.contains(key)
}

// objects calls yield for each object, once for each matching key that it has.
func (k *indexCondition) objects(yield func(object string, item any) bool) {
	more := true
	k.keys(func(key string, _ int) bool {
		k.index.Objects(key, func(object string, item any) bool {
			more = yield(object, item)
			return more
		})
		return more
	})
}

func (k *indexCondition) holds(object string, item any) bool {
	switch k.method {
	case testOwnKeys:
		if !k.meter.spend(k.index.keyCost()) {
			return false
		}
		if k.exactSet == nil {
			k.exactSet = keySet(k.exact)
		}
		return slices.ContainsFunc(k.index.keysOf(nil, object, item), k.matchesKey)
	case testSet:
		if k.set == nil {
			k.set = make(map[string]struct{}, k.count)
			k.objects(func(o string, _ any) bool {
				k.set[o] = struct{}{}
				return k.meter.spend(1)
			})
		}
		_, ok := k.set[object]
		return ok && k.meter.spend(1)
	}
	return slices.ContainsFunc(k.exact, func(key string) bool {
		return k.meter.spend(1) && k.index.Has(key, object)
	})
}

func keySet(keys []string) map[string]struct{} {
	set := make(map[string]struct{}, len(keys))
	for _, key := range keys {
		set[key] = struct{}{}
	}
	return set
}

// labelCondition matches objects by a label selector.
type labelCondition struct {
	selector *naming.LabelMatcher
	query    string
	meter    *workMeter
	// indexed returns index conditions that match a superset of the selector's objects.
	indexed func() []*indexCondition
}

func (l labelCondition) holds(_ string, item any) bool {
	return l.meter.spend(1+l.selector.Len()) && l.selector.Matches(labelsOf(item))
}

func (l labelCondition) cost() cost   { return costLabels }
func (l labelCondition) text() string { return l.query }

// bodyCondition matches objects by a condition on their JSON.
type bodyCondition struct {
	tester *itemTester
	query  string
	meter  *workMeter
}

func (b bodyCondition) holds(_ string, item any) bool {
	return b.meter.spend(bodyWork) && b.tester.holds(item)
}
func (b bodyCondition) cost() cost   { return costBody }
func (b bodyCondition) text() string { return b.query }

// celCondition matches objects by a CEL expression. The query ends with the error of the first object on
// which it fails.
type celCondition struct {
	expression expression.Expression
	query      string
	meter      *workMeter
}

func (b celCondition) holds(object string, item any) bool {
	u := objectOf(item)
	if !b.meter.spend(bodyWork) || u == nil {
		return false
	}
	result, err := b.expression.Eval(b.meter.context(), u.Object)
	matches, isBool := result.(bool)
	if err == nil && !isBool {
		err = errNotBoolean
	}
	if err != nil && b.meter.context().Err() == nil {
		err = failedOn(object, b.expression, err)
	}
	return !b.meter.stopOn(err) && matches
}
func (b celCondition) cost() cost   { return costBody }
func (b celCondition) text() string { return b.query }

type negatedCondition struct{ sub compiledCondition }

func (n negatedCondition) holds(key string, item any) bool { return !n.sub.holds(key, item) }
func (n negatedCondition) cost() cost                      { return n.sub.cost() }
func (n negatedCondition) text() string                    { return "!(" + n.sub.text() + ")" }

// groupCondition matches objects that all conditions of subs match, or that at least one matches if or is
// set.
type groupCondition struct {
	or    bool
	subs  []compiledCondition // cheapest first
	query string
}

func (s groupCondition) holds(key string, item any) bool {
	for _, sub := range s.subs {
		if sub.holds(key, item) == s.or {
			return s.or
		}
	}
	return !s.or
}

func (s groupCondition) cost() cost {
	highest := costNothing
	for _, sub := range s.subs {
		highest = max(highest, sub.cost())
	}
	return highest
}

func (s groupCondition) text() string { return s.query }

// candidateSource is a condition that can list its objects.
type candidateSource interface {
	compiledCondition
	// size is an upper bound or an estimate of the number of objects.
	size() int
	// objects calls yield for each object until it returns false. repeats reports whether it can yield an
	// object twice.
	objects(yield func(object string, item any) bool)
	repeats() bool
}

// driver lists the candidates of a query without a full scan.
type driver struct {
	parts []candidateSource
	// exact means that every candidate matches the whole query.
	exact bool
}

// count is the maximum number of candidates.
func (d driver) count() int {
	n := 0
	for _, k := range d.parts {
		n += k.size()
	}
	return n
}

// chooseDriver finds the smallest driver of a condition. It returns false if there is none.
func chooseDriver(c compiledCondition) (best driver, found bool) {
	switch c := c.(type) {
	case candidateSource:
		return driver{[]candidateSource{c}, true}, true
	case labelCondition:
		for _, k := range c.indexed() {
			if !found || k.count < best.count() {
				best, found = driver{parts: []candidateSource{k}}, true
			}
		}
	case constant:
		return driver{exact: true}, !bool(c)
	case groupCondition:
		if c.or {
			return unionDriver(c.subs)
		}
		for _, sub := range c.subs {
			d, ok := chooseDriver(sub)
			if ok && (!found || d.count() < best.count()) {
				best, found = driver{parts: d.parts}, true
			}
		}
	}
	return best, found
}

// unionDriver combines the drivers of several conditions.
func unionDriver(subs []compiledCondition) (driver, bool) {
	combined := driver{exact: true}
	for _, sub := range subs {
		d, ok := chooseDriver(sub)
		if !ok {
			return driver{}, false
		}
		combined.parts = append(combined.parts, d.parts...)
		combined.exact = combined.exact && d.exact
	}
	return combined, true
}

// objects calls yield once for each candidate, until it returns false.
func (d driver) objects(yield func(object string, item any) bool) {
	if len(d.parts) == 1 && !d.parts[0].repeats() {
		d.parts[0].objects(yield)
		return
	}
	visited := make(map[string]struct{}, d.count())
	more := true
	for _, k := range d.parts {
		k.objects(func(object string, item any) bool {
			if _, duplicate := visited[object]; duplicate {
				return true
			}
			visited[object] = struct{}{}
			more = yield(object, item)
			return more
		})
		if !more {
			return
		}
	}
}

// covers reports whether the driver lists exactly the objects of c.
func (d driver) covers(c compiledCondition) bool {
	k, ok := c.(candidateSource)
	return ok && len(d.parts) == 1 && d.parts[0] == k
}

// remaining returns the conditions that the candidates have to be tested by: cheap ones, and expensive ones
// that read bodies.
func (d driver) remaining(c compiledCondition) (cheap, expensive []compiledCondition) {
	if d.exact {
		return nil, nil
	}
	subs := []compiledCondition{c}
	if s, ok := c.(groupCondition); ok && !s.or {
		subs = s.subs
	}
	for _, sub := range subs {
		switch {
		case d.covers(sub):
		case sub.cost() == costBody:
			expensive = append(expensive, sub)
		default:
			cheap = append(cheap, sub)
		}
	}
	return cheap, expensive
}

func allHold(conds []compiledCondition, key string, item any) bool {
	for _, c := range conds {
		if !c.holds(key, item) {
			return false
		}
	}
	return true
}
