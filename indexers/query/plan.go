package query

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/naming"
)

type compiledCondition interface {
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

// constantCondition matches all objects or none.
type constantCondition bool

func (c constantCondition) matches(string, any) bool { return bool(c) }
func (c constantCondition) cost() cost               { return costNothing }

func (c constantCondition) text() string {
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
	matchingObjects, exactKeySet sets.Set[string]
}

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
	if i.exactKeys != nil || i.keySpan.isEmpty {
		return
	}
	includesNull := !i.index.isComposite()
	visit := func(key string, count int) bool {
		return i.meter.spend(1) && (includesNull && key == indexers.Null || yield(key, count))
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
	if ok && i.exactKeys == nil && !i.keySpan.isEmpty {
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
		return i.exactKeySet.Has(key)
	}
	return (key != indexers.Null || i.index.isComposite()) && i.keySpan.contains(key)
}

// objects calls yield for each object, once for each matching key that it has.
func (i *indexCondition) objects(yield func(object string, item any) bool) {
	wantsMore := true
	i.keys(func(key string, _ int) bool {
		i.index.Objects(key, func(object string, item any) bool {
			wantsMore = yield(object, item)
			return wantsMore
		})
		return wantsMore
	})
}

func (i *indexCondition) matches(object string, item any) bool {
	switch i.test {
	case testOwnKeys:
		if !i.meter.spend(i.index.keyCost()) {
			return false
		}
		if i.exactKeySet == nil {
			i.exactKeySet = sets.New(i.exactKeys...)
		}
		return slices.ContainsFunc(i.index.keysOf(nil, object, item), i.matchesKey)
	case testSet:
		if i.matchingObjects == nil {
			i.matchingObjects = make(sets.Set[string], i.count)
			i.objects(func(o string, _ any) bool {
				i.matchingObjects.Insert(o)
				return i.meter.spend(1)
			})
		}
		return i.matchingObjects.Has(object) && i.meter.spend(1)
	}
	return slices.ContainsFunc(i.exactKeys, func(key string) bool {
		return i.meter.spend(1) && i.index.Has(key, object)
	})
}

// labelCondition matches objects by a label selector.
type labelCondition struct {
	selector *naming.LabelMatcher
	query    string
	meter    *workMeter
	// indexConditions returns conditions that match a superset of the selector's objects.
	indexConditions func() []*indexCondition
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
	result, err := c.expression.Eval(c.meter.ctx, u.Object)
	matches, isBool := result.(bool)
	if err == nil && !isBool {
		err = errors.New("the result is not a boolean; compare the value, as in self.spec.size > 2")
	}
	if err != nil && c.meter.ctx.Err() == nil {
		err = celError(object, c.expression, err)
	}
	return !c.meter.stopOn(err) && matches
}
func (c celCondition) cost() cost   { return costBody }
func (c celCondition) text() string { return c.query }

type negatedCondition struct{ sub compiledCondition }

func (n negatedCondition) matches(key string, item any) bool { return !n.sub.matches(key, item) }
func (n negatedCondition) cost() cost                        { return n.sub.cost() }
func (n negatedCondition) text() string                      { return "!(" + n.sub.text() + ")" }

// groupCondition matches an object if all conditions of subs match or, with isOr, at least one.
type groupCondition struct {
	isOr  bool
	subs  []compiledCondition // cheapest first
	query string
}

func (g groupCondition) matches(key string, item any) bool {
	for _, sub := range g.subs {
		if sub.matches(key, item) == g.isOr {
			return g.isOr
		}
	}
	return !g.isOr
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
	// isExact means that every candidate matches the whole query.
	isExact bool
}

// maxCount is the maximum number of candidates.
func (l candidateList) maxCount() int {
	n := 0
	for _, source := range l.parts {
		n += source.size()
	}
	return n
}

// chooseCandidates finds the smallest candidate list of a condition. It returns false if there is none.
func chooseCandidates(c compiledCondition) (smallest candidateList, found bool) {
	switch c := c.(type) {
	case candidateSource:
		return candidateList{[]candidateSource{c}, true}, true
	case labelCondition:
		for _, source := range c.indexConditions() {
			if !found || source.count < smallest.maxCount() {
				smallest, found = candidateList{parts: []candidateSource{source}}, true
			}
		}
	case constantCondition:
		return candidateList{isExact: true}, !bool(c)
	case groupCondition:
		if c.isOr {
			return unionCandidates(c.subs)
		}
		for _, sub := range c.subs {
			list, ok := chooseCandidates(sub)
			if ok && (!found || list.maxCount() < smallest.maxCount()) {
				smallest, found = candidateList{parts: list.parts}, true
			}
		}
	}
	return smallest, found
}

func unionCandidates(subs []compiledCondition) (candidateList, bool) {
	combined := candidateList{isExact: true}
	for _, sub := range subs {
		list, ok := chooseCandidates(sub)
		if !ok {
			return candidateList{}, false
		}
		combined.parts = append(combined.parts, list.parts...)
		combined.isExact = combined.isExact && list.isExact
	}
	return combined, true
}

// objects calls yield once for each candidate, until it returns false.
func (l candidateList) objects(yield func(object string, item any) bool) {
	if len(l.parts) == 1 && !l.parts[0].repeats() {
		l.parts[0].objects(yield)
		return
	}
	visited := make(map[string]struct{}, l.maxCount())
	wantsMore := true
	for _, source := range l.parts {
		source.objects(func(object string, item any) bool {
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
func (l candidateList) covers(c compiledCondition) bool {
	source, ok := c.(candidateSource)
	return ok && len(l.parts) == 1 && l.parts[0] == source
}

// remaining returns the conditions to test for each candidate. The expensive ones read bodies.
func (l candidateList) remaining(c compiledCondition) (cheap, expensive []compiledCondition) {
	if l.isExact {
		return nil, nil
	}
	subs := []compiledCondition{c}
	if s, ok := c.(groupCondition); ok && !s.isOr {
		subs = s.subs
	}
	for _, sub := range subs {
		switch {
		case l.covers(sub):
		case sub.cost() == costBody:
			expensive = append(expensive, sub)
		default:
			cheap = append(cheap, sub)
		}
	}
	return cheap, expensive
}

func allMatch(conds []compiledCondition, key string, item any) bool {
	return groupCondition{subs: conds}.matches(key, item)
}
