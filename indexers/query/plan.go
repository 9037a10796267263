package query

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/labelmatch"
)

// cond is a query that was compiled for one snapshot.
type cond interface {
	// holds tests one object.
	holds(key string, item any) bool
	// cost ranks the test: what is cheap is tested first.
	cost() cost
	// text is the query that it comes from.
	text() string
}

type cost uint8

const (
	costNothing cost = iota
	costLookup       // in an index
	costLabels
	costSet  // in a set that has to be made of an index first
	costBody // of the object
)

// constant holds for all objects or for none.
type constant bool

func (c constant) holds(string, any) bool { return bool(c) }
func (c constant) cost() cost             { return costNothing }

func (c constant) text() string {
	if c {
		return "*"
	}
	return "!*"
}

// keyed holds for objects with some keys of an index.
type keyed struct {
	index access
	exact []string // either these
	span  span     // or all within, but for what stands for a missing value
	count int      // how many objects have the keys, at most, or about
	query string
	test  keyTest
	meter *meter
	// set holds the objects with the keys, once testSet needs it; wanted holds exact, once testReread does.
	set, wanted map[string]struct{}
}

// keyTest is how an object is tested.
type keyTest uint8

const (
	testEach   keyTest = iota // is it under any of the exact keys?
	testSet                   // is it in a set, which is made of the index once?
	testReread                // are its own keys among them?
)

func (k *keyed) text() string  { return k.query }
func (k *keyed) size() int     { return k.count }
func (k *keyed) repeats() bool { return !k.index.single() && len(k.exact) != 1 }

func (k *keyed) cost() cost {
	if k.exact != nil && len(k.exact) <= fewKeys {
		return costLookup
	}
	return costSet
}

// fewKeys is up to how many exact keys an object is looked up under each of them.
const fewKeys = 16

// keys calls yield for each key that the index has, with the number of its objects.
func (k *keyed) keys(yield func(key string, count int) bool) {
	for _, key := range k.exact {
		if n := k.index.Count(key); !k.meter.work(1) || n > 0 && !yield(key, n) {
			return
		}
	}
	if k.exact != nil || k.span.nothing {
		return
	}
	null := !k.index.composite()
	each := func(key string, count int) bool {
		return k.meter.work(1) && (null && key == indexers.Null || yield(key, count))
	}
	if k.span == (span{}) {
		k.index.each(each)
		return
	}
	k.index.Keys(k.span.low, k.span.high, false, each)
}

// manyKeys is from how many keys on their objects are not counted one by one.
const manyKeys = 128

// estimate sets the count.
func (k *keyed) estimate(objects int) {
	counter, ok := k.index.Index.(interface {
		CountKeys(from, to string) (int, bool)
	})
	if ok && k.exact == nil && !k.span.nothing {
		if n, ok := counter.CountKeys(k.span.low, k.span.high); ok && n > manyKeys {
			// As many for each key as there are in the whole index, but not more than there are at all.
			k.count = min(n*(objects/max(k.index.Len(), 1)+1), max(objects, n))
			return
		}
	}
	k.keys(func(_ string, count int) bool {
		k.count += count
		return true
	})
}

// plan chooses how objects are tested, of which there are some: by whatever costs least.
func (k *keyed) plan(objects int) {
	k.test = testSet
	best := k.count + len(k.exact)
	if k.exact != nil && (len(k.exact) <= fewKeys || objects*len(k.exact) < best) {
		k.test, best = testEach, min(best, objects*len(k.exact))
		if len(k.exact) <= fewKeys {
			return
		}
	}
	if k.index.functions != nil && objects*k.index.rereading() < best {
		k.test = testReread
	}
}

// fits reports whether a key is one of those that are asked for.
func (k *keyed) fits(key string) bool {
	if k.exact != nil {
		_, ok := k.wanted[key]
		return ok
	}
	if k.span.nothing || key == indexers.Null && !k.index.composite() {
		return false
	}
	return key >= k.span.low && (k.span.high == "" || key < k.span.high)
}

// objects calls yield for each object; for one with several of the keys more than once.
func (k *keyed) objects(yield func(object string, item any) bool) {
	more := true
	k.keys(func(key string, _ int) bool {
		k.index.Objects(key, func(object string, item any) bool {
			more = yield(object, item)
			return more
		})
		return more
	})
}

func (k *keyed) holds(object string, item any) bool {
	switch k.test {
	case testReread:
		if !k.meter.work(k.index.rereading()) {
			return false
		}
		if k.wanted == nil {
			k.wanted = setOf(k.exact)
		}
		return slices.ContainsFunc(k.index.keysOf(nil, object, item), k.fits)
	case testSet:
		if k.set == nil {
			k.set = make(map[string]struct{}, k.count)
			k.objects(func(o string, _ any) bool {
				k.set[o] = struct{}{}
				return k.meter.work(1)
			})
		}
		_, ok := k.set[object]
		return ok && k.meter.work(1)
	}
	return slices.ContainsFunc(k.exact, func(key string) bool {
		return k.meter.work(1) &&
			k.index.Has(key, object)
	})
}

func setOf(keys []string) map[string]struct{} {
	set := make(map[string]struct{}, len(keys))
	for _, key := range keys {
		set[key] = struct{}{}
	}
	return set
}

// labelled holds for objects that a selector selects.
type labelled struct {
	selector *labelmatch.Matcher
	query    string
	meter    *meter
	// starts finds indexes that lead to the objects.
	starts func() []*keyed
}

func (l labelled) holds(_ string, item any) bool {
	return l.meter.work(1+l.selector.Len()) && l.selector.Matches(labelsOf(item))
}

func (l labelled) cost() cost   { return costLabels }
func (l labelled) text() string { return l.query }

// body holds for objects that a condition holds for.
type body struct {
	probe *probe
	query string
	meter *meter
}

func (b body) holds(_ string, item any) bool { return b.meter.work(bodyWork) && b.probe.holds(item) }
func (b body) cost() cost                    { return costBody }
func (b body) text() string                  { return b.query }

// not holds where sub does not.
type not struct{ sub cond }

func (n not) holds(key string, item any) bool { return !n.sub.holds(key, item) }
func (n not) cost() cost                      { return n.sub.cost() }
func (n not) text() string                    { return "!(" + n.sub.text() + ")" }

// several holds where all of subs do, or any.
type several struct {
	any   bool
	subs  []cond // the cheapest first
	query string
}

func (s several) holds(key string, item any) bool {
	for _, sub := range s.subs {
		if sub.holds(key, item) == s.any {
			return s.any
		}
	}
	return !s.any
}

func (s several) cost() cost {
	most := costNothing
	for _, sub := range s.subs {
		most = max(most, sub.cost())
	}
	return most
}

func (s several) text() string { return s.query }
