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
	// set holds the objects, once it is needed for a span.
	set map[string]struct{}
	// reread has the keys of an object computed anew instead: when few are tested, and the set would be large.
	reread bool
}

func (k *keyed) text() string { return k.query }

func (k *keyed) cost() cost {
	if k.exact != nil {
		return costLookup
	}
	return costSet
}

// keys calls yield for each key that the index has, with the number of its objects.
func (k *keyed) keys(yield func(key string, count int) bool) {
	for _, key := range k.exact {
		if n := k.index.Count(key); n > 0 && !yield(key, n) {
			return
		}
	}
	if k.exact != nil || k.span.nothing {
		return
	}
	null := !k.index.composite()
	k.index.Keys(k.span.low, k.span.high, false, func(key string, count int) bool {
		return null && key == indexers.Null || yield(key, count)
	})
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

// fits reports whether a key is within the span.
func (k *keyed) fits(key string) bool {
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
	if k.reread {
		return slices.ContainsFunc(keysOf(item, k.index.functions), k.fits)
	}
	if k.exact != nil {
		return slices.ContainsFunc(k.exact, func(key string) bool { return k.index.Has(key, object) })
	}
	if k.set == nil {
		k.set = make(map[string]struct{}, k.count)
		k.objects(func(o string, _ any) bool {
			k.set[o] = struct{}{}
			return true
		})
	}
	_, ok := k.set[object]
	return ok
}

// labelled holds for objects that a selector selects.
type labelled struct {
	selector labels.Selector
	query    string
	// starts finds indexes that lead to the objects.
	starts func() []*keyed
}

func (l labelled) holds(_ string, item any) bool { return l.selector.Matches(labelsOf(item)) }
func (l labelled) cost() cost                    { return costLabels }
func (l labelled) text() string                  { return l.query }

// body holds for objects that a condition holds for.
type body struct {
	probe *probe
	query string
}

func (b body) holds(_ string, item any) bool { return b.probe.holds(item) }
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

// compile makes conditions of a query.
func (s schema) compile(snapshot Snapshot, q Query) (cond, error) {
	switch q := q.(type) {
	case everything:
		return constant(true), nil
	case junction:
		return s.compileJunction(snapshot, q)
	case negation:
		sub, err := s.compile(snapshot, q.sub)
		switch sub := sub.(type) {
		case constant:
			return !sub, err
		case not:
			return sub.sub, err
		}
		return not{sub}, err
	case *comparison:
		k, err := s.compileComparison(snapshot, q)
		return k, q.at.locate(err)
	case *labelling:
		if q.err != nil {
			return nil, q.at.locate(q.err)
		}
		return labelled{q.selector, q.String(), func() []*keyed { return s.labelStarts(snapshot, q.selector) }}, nil
	case *condition:
		t, err := q.compile()
		return body{newProbe(t), q.String()}, q.at.locate(err)
	}
	return nil, errNoQuery
}

// compileJunction compiles all parts, flattens them, and drops what decides nothing.
func (s schema) compileJunction(snapshot Snapshot, q junction) (cond, error) {
	out := several{any: q.or}
	decided := false
	for _, sub := range q.subs {
		c, err := s.compile(snapshot, sub)
		if err != nil {
			return nil, err
		}
		switch c := c.(type) {
		case constant:
			decided = decided || bool(c) == q.or
			continue
		case several:
			if c.any == q.or {
				out.subs = append(out.subs, c.subs...)
				continue
			}
		}
		out.subs = append(out.subs, c)
	}
	if !q.or {
		out.subs = joinSpans(snapshot, out.subs)
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
func joinSpans(snapshot Snapshot, subs []cond) []cond {
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
		both := &keyed{index: k.index, span: first.span.and(k.span), query: first.query + " && " + k.query}
		both.estimate(snapshot.Len())
		out[i] = both
	}
	return out
}

func (s schema) compileComparison(snapshot Snapshot, c *comparison) (cond, error) {
	index, err := s.open(snapshot, c.index)
	if err != nil {
		return nil, err
	}
	k := &keyed{index: index, query: c.String()}
	if c.op == opEqual || c.op == opIn {
		k.exact = []string{}
		for _, v := range c.values {
			key, err := index.key(v)
			if err != nil {
				return nil, index.suggestPrefix(v, err)
			}
			if !slices.Contains(k.exact, key) {
				k.exact = append(k.exact, key)
			}
		}
	} else if k.span, err = index.span(c); err != nil {
		return nil, err
	}
	k.estimate(snapshot.Len())
	return k, nil
}
