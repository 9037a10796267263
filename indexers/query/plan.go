package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/naming"
)

// compiledCondition is a condition compiled for one snapshot.
type compiledCondition interface {
	// matches tests one object.
	matches(key string, item any) bool
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

func (c constant) matches(string, any) bool { return bool(c) }
func (c constant) cost() cost               { return costNothing }

func (c constant) text() string {
	if c {
		return "*"
	}
	return "!*"
}

// indexCondition matches objects with certain keys in an index.
type indexCondition struct {
	index     openedIndex
	exactKeys []string // the keys, if not nil
	keySpan   span     // otherwise the range of keys, without indexers.Null
	count     int      // number of matching objects: an upper bound, or an estimate
	query     string
	test      keyTest
	meter     *workMeter
	// matchingObjects is built by the first testSet, exactKeySet by the first testOwnKeys.
	matchingObjects, exactKeySet map[string]struct{}
}

// keyTest is a way to test an object.
type keyTest uint8

const (
	testEach    keyTest = iota // look the object up under each exact key
	testSet                    // look the object up in the set of all matching objects
	testOwnKeys                // compare the object's own keys
)

func (i *indexCondition) text() string  { return i.query }
func (i *indexCondition) size() int     { return i.count }
func (i *indexCondition) repeats() bool { return !i.index.isSingleValued() && len(i.exactKeys) != 1 }

func (i *indexCondition) cost() cost {
	if i.exactKeys != nil && len(i.exactKeys) <= maxLookups {
		return costLookup
	}
	return costSet
}

// maxLookups is the maximum number of exact keys for which testEach is always chosen.
const maxLookups = 16

// keys calls yield for each matching key in the index with the number of its objects.
func (i *indexCondition) keys(yield func(key string, count int) bool) {
	for _, key := range i.exactKeys {
		if n := i.index.Count(key); !i.meter.spend(1) || n > 0 && !yield(key, n) {
			return
		}
	}
	if i.exactKeys != nil || i.keySpan.empty {
		return
	}
	null := !i.index.composite()
	visit := func(key string, count int) bool {
		return i.meter.spend(1) && (null && key == indexers.Null || yield(key, count))
	}
	if i.keySpan == (span{}) {
		i.index.eachKey(visit)
		return
	}
	i.index.Keys(i.keySpan.low, i.keySpan.high, false, visit)
}

// maxCountedKeys is the number of keys above which objects are estimated instead of counted.
const maxCountedKeys = 128

func (i *indexCondition) estimate(objects int) {
	counter, ok := i.index.Index.(interface {
		CountKeys(from, to string) (int, bool)
	})
	if ok && i.exactKeys == nil && !i.keySpan.empty {
		if n, ok := counter.CountKeys(i.keySpan.low, i.keySpan.high); ok && n > maxCountedKeys {
			// the average number per key times the keys, but not more than all objects
			i.count = min(n*(objects/max(i.index.Len(), 1)+1), max(objects, n))
			return
		}
	}
	i.keys(func(_ string, count int) bool {
		i.count += count
		return true
	})
}

// chooseTest chooses the cheapest test for a number of objects.
func (i *indexCondition) chooseTest(objects int) {
	i.test = testSet
	best := i.count + len(i.exactKeys)
	if i.exactKeys != nil && (len(i.exactKeys) <= maxLookups || objects*len(i.exactKeys) < best) {
		i.test, best = testEach, min(best, objects*len(i.exactKeys))
		if len(i.exactKeys) <= maxLookups {
			return
		}
	}
	if i.index.functions != nil && objects*i.index.keyCost() < best {
		i.test = testOwnKeys
	}
}

func (i *indexCondition) matchesKey(key string) bool {
	if i.exactKeys != nil {
		_, ok := i.exactKeySet[key]
		return ok
	}
	return (key != indexers.Null || i.index.composite()) && i.keySpan.contains(key)
}

// objects calls yield for each object, once for each matching key that it has.
func (i *indexCondition) objects(yield func(object string, item any) bool) {
	more := true
	i.keys(func(key string, _ int) bool {
		i.index.Objects(key, func(object string, item any) bool {
			more = yield(object, item)
			return more
		})
		return more
	})
}

func (i *indexCondition) matches(object string, item any) bool {
	switch i.test {
	case testOwnKeys:
		if !i.meter.spend(i.index.keyCost()) {
			return false
		}
		if i.exactKeySet == nil {
			i.exactKeySet = keySet(i.exactKeys)
		}
		return slices.ContainsFunc(i.index.keysOf(nil, object, item), i.matchesKey)
	case testSet:
		if i.matchingObjects == nil {
			i.matchingObjects = make(map[string]struct{}, i.count)
			i.objects(func(o string, _ any) bool {
				i.matchingObjects[o] = struct{}{}
				return i.meter.spend(1)
			})
		}
		_, ok := i.matchingObjects[object]
		return ok && i.meter.spend(1)
	}
	return slices.ContainsFunc(i.exactKeys, func(key string) bool {
		return i.meter.spend(1) && i.index.Has(key, object)
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

func (l labelCondition) matches(_ string, item any) bool {
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

func (b bodyCondition) matches(_ string, item any) bool {
	return b.meter.spend(bodyWork) && b.tester.matches(item)
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

func (c celCondition) matches(object string, item any) bool {
	u := objectOf(item)
	if !c.meter.spend(bodyWork) || u == nil {
		return false
	}
	result, err := c.expression.Eval(c.meter.context(), u.Object)
	matches, isBool := result.(bool)
	if err == nil && !isBool {
		err = errNotBoolean
	}
	if err != nil && c.meter.context().Err() == nil {
		err = failedOn(object, c.expression, err)
	}
	return !c.meter.stopOn(err) && matches
}
func (c celCondition) cost() cost   { return costBody }
func (c celCondition) text() string { return c.query }

type negatedCondition struct{ sub compiledCondition }

func (n negatedCondition) matches(key string, item any) bool { return !n.sub.matches(key, item) }
func (n negatedCondition) cost() cost                        { return n.sub.cost() }
func (n negatedCondition) text() string                      { return "!(" + n.sub.text() + ")" }

// groupCondition matches objects that all conditions of subs match, or that at least one matches if or is
// set.
type groupCondition struct {
	or    bool
	subs  []compiledCondition // cheapest first
	query string
}

func (g groupCondition) matches(key string, item any) bool {
	for _, sub := range g.subs {
		if sub.matches(key, item) == g.or {
			return g.or
		}
	}
	return !g.or
}

func (g groupCondition) cost() cost {
	highest := costNothing
	for _, sub := range g.subs {
		highest = max(highest, sub.cost())
	}
	return highest
}

func (g groupCondition) text() string { return g.query }

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

// candidateList lists the candidates of a query without a full scan.
type candidateList struct {
	parts []candidateSource
	// exact means that every candidate matches the whole query.
	exact bool
}

// count is the maximum number of candidates.
func (d candidateList) count() int {
	n := 0
	for _, k := range d.parts {
		n += k.size()
	}
	return n
}

// chooseCandidates finds the smallest candidate list of a condition. It returns false if there is none.
func chooseCandidates(c compiledCondition) (smallest candidateList, found bool) {
	switch c := c.(type) {
	case candidateSource:
		return candidateList{[]candidateSource{c}, true}, true
	case labelCondition:
		for _, k := range c.indexed() {
			if !found || k.count < smallest.count() {
				smallest, found = candidateList{parts: []candidateSource{k}}, true
			}
		}
	case constant:
		return candidateList{exact: true}, !bool(c)
	case groupCondition:
		if c.or {
			return unionCandidates(c.subs)
		}
		for _, sub := range c.subs {
			d, ok := chooseCandidates(sub)
			if ok && (!found || d.count() < smallest.count()) {
				smallest, found = candidateList{parts: d.parts}, true
			}
		}
	}
	return smallest, found
}

// unionCandidates combines the candidate lists of several conditions.
func unionCandidates(subs []compiledCondition) (candidateList, bool) {
	combined := candidateList{exact: true}
	for _, sub := range subs {
		d, ok := chooseCandidates(sub)
		if !ok {
			return candidateList{}, false
		}
		combined.parts = append(combined.parts, d.parts...)
		combined.exact = combined.exact && d.exact
	}
	return combined, true
}

// objects calls yield once for each candidate, until it returns false.
func (d candidateList) objects(yield func(object string, item any) bool) {
	if len(d.parts) == 1 && !d.parts[0].repeats() {
		d.parts[0].objects(yield)
		return
	}
	visited := make(map[string]struct{}, d.count())
	wantsMore := true
	for _, k := range d.parts {
		k.objects(func(object string, item any) bool {
			if _, duplicate := visited[object]; duplicate {
				return true
			}
			visited[object] = struct{}{}
			wantsMore = yield(object, item)
			return wantsMore
		})
		if !wantsMore {
			return
		}
	}
}

// covers reports whether the list contains exactly the objects of c.
func (d candidateList) covers(c compiledCondition) bool {
	k, ok := c.(candidateSource)
	return ok && len(d.parts) == 1 && d.parts[0] == k
}

// remaining returns the conditions that the candidates have to be tested by: cheap ones, and expensive ones
// that read bodies.
func (d candidateList) remaining(c compiledCondition) (cheap, expensive []compiledCondition) {
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

func allMatch(conds []compiledCondition, key string, item any) bool {
	for _, c := range conds {
		if !c.matches(key, item) {
			return false
		}
	}
	return true
}
