package query

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers"
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
	testReread                // are the keys that are computed of it anew among them?
)

func (k *keyed) text() string { return k.query }

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
	if k.index.functions != nil && objects*rereadFactor < best {
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
		if !k.meter.work(rereadFactor) {
			return false
		}
		if k.wanted == nil {
			k.wanted = setOf(k.exact)
		}
		return slices.ContainsFunc(keysOf(item, k.index.functions), k.fits)
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
	return slices.ContainsFunc(k.exact, func(key string) bool { return k.meter.work(1) && k.index.Has(key, object) })
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
	selector labels.Selector
	query    string
	meter    *meter
	// starts finds indexes that lead to the objects.
	starts func() []*keyed
}

func (l labelled) holds(_ string, item any) bool {
	return l.meter.work(1) && l.selector.Matches(labelsOf(item))
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

// compiler makes conditions of a query over one snapshot.
type compiler struct {
	schema   schema
	snapshot Snapshot
	meter    *meter
	warnings []string
}

func (c *compiler) compile(q Query) (cond, error) {
	switch q := q.(type) {
	case everything:
		return constant(true), nil
	case junction:
		return c.compileJunction(q)
	case negation:
		sub, err := c.compile(q.sub)
		if err != nil {
			return nil, err
		}
		switch sub := sub.(type) {
		case constant:
			return !sub, nil
		case not:
			return sub.sub, nil
		}
		return not{sub}, nil
	case *comparison:
		k, err := c.compileComparison(q)
		return k, q.at.locate(err)
	case *labelling:
		if q.err != nil {
			return nil, q.at.locate(q.err)
		}
		return labelled{q.selector, q.String(), c.meter, func() []*keyed { return c.labelStarts(q.selector) }}, nil
	case *condition:
		t, err := q.compile()
		return body{newProbe(t), q.String(), c.meter}, q.at.locate(err)
	}
	return nil, errNoQuery
}

// compileJunction compiles all parts, flattens them, and drops what decides nothing.
func (c *compiler) compileJunction(q junction) (cond, error) {
	out := several{any: q.or}
	decided := false
	for _, sub := range q.subs {
		part, err := c.compile(sub)
		if err != nil {
			return nil, err
		}
		switch part := part.(type) {
		case constant:
			decided = decided || bool(part) == q.or
			continue
		case several:
			if part.any == q.or {
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
	case decided:
		return constant(q.or), nil
	case len(out.subs) == 0:
		return constant(!q.or), nil
	case len(out.subs) == 1:
		return out.subs[0], nil
	}
	out.query = q.String()
	slices.SortStableFunc(out.subs, func(a, b cond) int { return int(a.cost()) - int(b.cost()) })
	return out, nil
}

// joinSpans makes one of several spans that have to hold for the same index, where an object has one value at most:
// of several values, each could be in another of the spans.
func (c *compiler) joinSpans(subs []cond) []cond {
	at := map[string]int{}
	out := subs[:0:0]
	for _, sub := range subs {
		k, ok := sub.(*keyed)
		if !ok || k.exact != nil || !k.index.single() {
			out = append(out, sub)
			continue
		}
		i, again := at[k.index.name]
		if !again {
			at[k.index.name] = len(out)
			out = append(out, k)
			continue
		}
		first := out[i].(*keyed)
		both := &keyed{index: k.index, meter: c.meter, test: testSet, span: first.span.and(k.span), query: first.query + " && " + k.query}
		both.estimate(c.snapshot.Len())
		out[i] = both
	}
	return out
}

func (c *compiler) compileComparison(q *comparison) (cond, error) {
	index, err := c.schema.open(c.snapshot, q.index)
	if err != nil {
		return nil, err
	}
	k := &keyed{index: index, query: q.String(), meter: c.meter}
	if q.op == opEqual || q.op == opIn {
		k.exact, err = c.exactKeys(index, q.values)
	} else {
		k.test = testSet
		k.span, err = index.span(q)
	}
	if err != nil {
		return nil, err
	}
	c.doubt(index, q)
	k.estimate(c.snapshot.Len())
	return k, nil
}

// exactKeys gives the keys of values, each once.
func (c *compiler) exactKeys(index access, values []value) ([]string, error) {
	keys := make([]string, 0, len(values))
	seen := make(map[string]struct{}, len(values))
	for _, v := range values {
		if !c.meter.work(1) {
			return nil, c.meter.err
		}
		key, err := index.key(v)
		if err != nil {
			return nil, index.suggestPrefix(v, err)
		}
		if _, again := seen[key]; !again {
			seen[key] = struct{}{}
			keys = append(keys, key)
		}
	}
	return keys, nil
}
