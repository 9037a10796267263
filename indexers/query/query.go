package query

import (
	"errors"
	"iter"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/references"
)

// Query says which objects are wanted. It never changes and may be used from any number of goroutines. What
// it says about indexes is only looked at when it is asked of a [Querier]: whether they exist, and whether
// the values are of their types.
type Query interface {
	// String gives the query in the text syntax; [Parse] makes the same query of it.
	String() string

	query()
}

// junction joins queries by "and" or by "or".
type junction struct {
	or   bool
	subs []Query
	// narrows says that the first of subs is what is asked, and the others of which objects.
	narrows bool
}

// negated returns the junction of the negated queries that holds where j does not.
func (j junction) negated() junction {
	subs := make([]Query, len(j.subs))
	for i, sub := range j.subs {
		subs[i] = Not(sub)
	}
	return junction{or: !j.or, subs: subs}
}

// negation holds for all objects for which sub does not.
type negation struct{ sub Query }

// everything holds for all objects.
type everything struct{}

// comparison is about the values of an index.
type comparison struct {
	op    operator
	index string
	// values holds the parts of each value: two values for a range, any number for "in", else one or none.
	values []value
	at     mark
}

// value is one value to look up.
type value struct {
	parts []string
	// joined values come from text, where the parts of a composite value are joined; whether it is one shows
	// when the index is known.
	joined bool
}

// operands calls yield for each text that a query compares with something.
func operands(q Query) iter.Seq[string] {
	return func(yield func(string) bool) { yieldOperands(q, yield) }
}

func yieldOperands(q Query, yield func(string) bool) bool {
	switch q := q.(type) {
	case negation:
		return yieldOperands(q.sub, yield)
	case junction:
		for _, sub := range q.subs {
			if !yieldOperands(sub, yield) {
				return false
			}
		}
	case *comparison:
		for _, v := range q.values {
			for _, part := range v.parts {
				if !yield(part) {
					return false
				}
			}
		}
	case *labelling:
		return yield(q.text)
	case *condition:
		return yield(q.text)
	case *linking:
		o := q.object
		return yield(q.reference) && yield(o.Group) && yield(o.Resource) && yield(o.Kind) &&
			yield(o.Namespace) && yield(o.Name) && yield(o.UID)
	}
	return true
}

// mark is where something is written, in a query that was text.
type mark struct {
	text       string
	start, end int
}

type operator uint8

const (
	opEqual operator = iota
	opIn
	opLess
	opAtMost
	opGreater
	opAtLeast
	opRange
	opPrefix
	opExists
	opContains
	opMatches
	opWithin
)

// labelling selects by labels.
type labelling struct {
	selector labels.Selector
	err      error // of the selector
	text     string
	at       mark
}

// condition looks into objects.
type condition struct {
	text    string
	at      mark
	compile func() (tester, error) // once
}

// linking is about the references of objects.
type linking struct {
	of        link
	object    references.Object // at the other end; not for dangling
	reference string            // its name, or empty for any
	at        mark
}

type link uint8

const (
	linkDangling link = iota
	linkTo            // the objects that refer to one
	linkFrom          // the objects that one refers to
)

func (*linking) query()    {}
func (junction) query()    {}
func (negation) query()    {}
func (everything) query()  {}
func (*comparison) query() {}
func (*labelling) query()  {}
func (*condition) query()  {}

// All holds for every object.
func All() Query { return everything{} }

// And holds for the objects for which all queries do; without any, for all objects.
func And(queries ...Query) Query { return junction{subs: queries} }

// Narrow is And of a query and others that say among which objects it is asked, such as those of a namespace.
// Its continue tokens are those of the query alone, so that they fit where there are no other objects in the
// first place.
func Narrow(q Query, to ...Query) Query {
	return junction{subs: append([]Query{q}, to...), narrows: true}
}

// asked returns a query without what narrows it.
func asked(q Query) Query {
	for {
		j, ok := q.(junction)
		if !ok || !j.narrows {
			return q
		}
		q = j.subs[0]
	}
}

// Or holds for the objects for which at least one query does; without any, for none.
func Or(queries ...Query) Query { return junction{or: true, subs: queries} }

// Not holds for all objects for which the query does not, among them those that are not in its index at all.
func Not(q Query) Query { return negation{q} }

// Eq holds for objects with this value. Of a composite index all parts have to be given. Values are written
// as text whatever their type, and need not be in their canonical form; indexers.Null stands for what an
// index with "missing: null" holds of objects without a value.
func Eq(index string, parts ...string) Query { return compare(opEqual, index, parts) }

// In holds for objects with one of these values, of an index that is not composite.
func In(index string, values ...string) Query {
	c := &comparison{op: opIn, index: index}
	for _, v := range values {
		c.values = append(c.values, value{parts: []string{v}})
	}
	return c
}

// Less holds for objects with a value before this one, of a sorted index. Of a composite index the first
// parts are enough, here and for the three below.
func Less(index string, parts ...string) Query { return compare(opLess, index, parts) }

// AtMost holds for objects with this value or one before.
func AtMost(index string, parts ...string) Query { return compare(opAtMost, index, parts) }

// Greater holds for objects with a value after this one.
func Greater(index string, parts ...string) Query { return compare(opGreater, index, parts) }

// AtLeast holds for objects with this value or one after.
func AtLeast(index string, parts ...string) Query { return compare(opAtLeast, index, parts) }

// Range holds for objects with a value from one on and before another, of a sorted index that is not
// composite. An empty text is no bound. It is one value that has to be within both bounds, where And of two
// queries is content with two values of one object.
func Range(index, from, to string) Query {
	return &comparison{op: opRange, index: index, values: []value{{parts: []string{from}},
		{parts: []string{to}}}}
}

// Prefix holds for objects with a value that begins like this: of a composite index with these parts, of
// another, which has to be sorted, with this text. When all parts of a composite index are given, the last is
// the beginning of a text.
func Prefix(index string, parts ...string) Query { return compare(opPrefix, index, parts) }

// Contains holds for objects with a value that contains a text. All values of the index are looked at, which
// is less than to look at all objects. Of a composite index the value is what a query shows: the parts joined
// by "/".
func Contains(index, text string) Query { return search(opContains, index, text) }

// Matches is Contains for a regular expression in the syntax of Go (RE2), which may match any part of the
// value.
func Matches(index, expression string) Query {
	return search(opMatches, index, expression)
}

// Within holds for objects with an address, or a range of addresses, within one such as "10.0.0.0/8". The
// index has to be of type ip or cidr.
func Within(index, prefix string) Query { return search(opWithin, index, prefix) }

// Dangling holds for objects with a reference that leads to nothing: of that name, or of any if it is empty.
// It needs a [Querier] WithReferences, like the two below.
func Dangling(reference string) Query { return &linking{of: linkDangling, reference: reference} }

// RefersTo holds for the objects that refer to one, by the reference of that name, or by any if it is empty.
// The object is whatever has the name: its UID does not count.
func RefersTo(object references.Object, reference string) Query {
	return &linking{of: linkTo, object: named(object), reference: reference}
}

// named leaves of an object what the text of a query says.
func named(o references.Object) references.Object {
	if o.UID = ""; o.Kind != "" {
		o.Resource = ""
	}
	return o
}

// ReferredBy holds for the objects that one refers to.
func ReferredBy(object references.Object, reference string) Query {
	return &linking{of: linkFrom, object: named(object), reference: reference}
}

// Exists holds for objects that have a value. indexers.Null is none.
func Exists(index string) Query { return &comparison{op: opExists, index: index} }

// Missing holds for objects that have no value.
func Missing(index string) Query { return Not(Exists(index)) }

// Label holds for objects with these labels; the selector is written as for kubectl: "app=web,tier!=test".
func Label(selector string) Query {
	s, err := labels.Parse(selector)
	return &labelling{selector: s, err: err, text: selector}
}

// errNoSelector is what a query says that was made of a nil selector.
var errNoSelector = errors.New("there is no selector; labels.Everything() selects all objects")

// Selector is Label for a selector that was made elsewhere. Of nil it makes a query that always fails.
func Selector(selector labels.Selector) Query {
	if selector == nil {
		return &labelling{err: errNoSelector, text: noQuery}
	}
	return &labelling{selector: selector, text: selector.String()}
}

// namespaceIndex is the name under which informers have the index by namespace.
const namespaceIndex = "namespace"

// Namespace holds for objects in one of these namespaces; "" stands for objects outside of any.
func Namespace(namespaces ...string) Query { return In(namespaceIndex, namespaces...) }

// Where holds for objects that a condition of the path language holds for, such as "@.spec.replicas > 2 &&
// !@.spec.paused", or that a path such as .spec.paused leads to something in. The body of each object that is
// left by the rest of the query is looked into.
func Where(condition string) Query { return where(condition) }

func where(text string) *condition {
	return &condition{text: text,
		compile: sync.OnceValues(func() (tester, error) { return compileCondition(text) })}
}

// search has one text that is never taken apart.
func search(op operator, index, text string) Query {
	return &comparison{op: op, index: index, values: []value{{parts: []string{text}, joined: true}}}
}

func compare(op operator, index string, parts []string) Query {
	return &comparison{op: op, index: index, values: []value{{parts: parts}}}
}
