package query

import (
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/expression"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// Query selects objects. It is immutable and safe for concurrent use. A [Querier] checks that the indexes
// exist and that the values have their types; building a query does not.
type Query interface {
	// String returns the query in the text syntax; [Parse] makes the same query of it.
	String() string

	query()
}

type junction struct {
	isOr bool
	subs []Query
	// isNarrowed is set by Narrow: the first of subs is the query, and the remaining ones are restrictions.
	isNarrowed bool
}

// negated returns the negation of j as a junction of negated queries.
func (j junction) negated() junction { return junction{isOr: !j.isOr, subs: naming.Map(j.subs, Not)} }

// negation matches the objects that sub does not match.
type negation struct{ sub Query }

type matchAll struct{}

// comparison compares the values of an index.
type comparison struct {
	op    operator
	index string
	// values has two elements for a range, any number for "in", and otherwise one or none.
	values   []value
	position textRange
}

// value is an operand, in parts if it is composite.
type value struct {
	parts []string
	// isJoinedText is set for a value from text, whose parts may be joined by "/". Only a composite index
	// splits the value.
	isJoinedText bool
}

// subqueries returns a query and the queries in it, in the order of its text.
func subqueries(q Query) []Query {
	all := []Query{q}
	switch q := q.(type) {
	case negation:
		all = append(all, subqueries(q.sub)...)
	case junction:
		all = append(all, slices.Concat(naming.Map(q.subs, subqueries)...)...)
	}
	return all
}

// textRange is the position of an element in the text of a query; zero if the query was not text.
type textRange struct {
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

type labelQuery struct {
	selector labels.Selector
	err      error // of parsing the selector
	text     string
	position textRange
}

// condition tests the body of objects.
type condition struct {
	text    string
	literal textRange
	compile func() (*jsonpath.Filter, error) // called once
}

// celQuery tests objects by a CEL expression.
type celQuery struct {
	text    string
	literal textRange
	compile func() (expression.Expression, error) // called once
}

// locate adds the position to an error of the expression.
func (c *celQuery) locate(err error) error {
	position := c.literal
	if invalid, ok := errors.AsType[*expression.Error](err); ok && position.text != "" {
		position = position.within(invalid.Problems[0].Offset, invalid.Problems[0].End)
	}
	return position.locate(err)
}

func (c *condition) locate(err error) error {
	position := c.literal
	var path *jsonpath.Error
	var dropped *DroppedFieldError
	switch {
	case position.text == "":
		return err
	case errors.As(err, &path):
		return position.within(path.Offset, path.Offset+path.Length).locate(conditionError{path})
	case errors.As(err, &dropped) && dropped.read.End > 0:
		position = position.within(dropped.read.Offset, dropped.read.End)
	}
	return position.locate(err)
}

type referenceQuery struct {
	kind      referenceKind
	object    references.Object // the other end; not set for dangling
	reference string            // reference name, or empty for any
	position  textRange
}

type referenceKind uint8

const (
	refDangling referenceKind = iota
	refersTo                  // objects that refer to the given one
	referredBy                // objects that the given one refers to
)

func (*referenceQuery) query() {}
func (junction) query()        {}
func (negation) query()        {}
func (matchAll) query()        {}
func (*comparison) query()     {}
func (*labelQuery) query()     {}
func (*condition) query()      {}
func (*celQuery) query()       {}

// All matches every object.
func All() Query { return matchAll{} }

// And matches the objects that all queries match; without queries, every object.
func And(queries ...Query) Query { return junction{subs: queries} }

// Narrow is And of a query and conditions that restrict its objects, such as a namespace. Its continue
// tokens are those of q: they are also valid for q over a source with only the restricted objects.
func Narrow(q Query, restrictions ...Query) Query {
	return junction{subs: append([]Query{q}, restrictions...), isNarrowed: true}
}

// withoutNarrowing returns the query that was passed to Narrow, or q itself.
func withoutNarrowing(q Query) Query {
	if j, ok := q.(junction); ok && j.isNarrowed {
		return withoutNarrowing(j.subs[0])
	}
	return q
}

// Or matches the objects that at least one query matches; without queries, none.
func Or(queries ...Query) Query { return junction{isOr: true, subs: queries} }

// Not matches all objects that the query does not match, including objects without a value in its index.
func Not(q Query) Query { return negation{q} }

// Eq matches objects with this value. A composite index needs all parts. Values of every type are written as
// text and need not be canonical. indexers.Null selects the objects without a value if the index has
// "missing: AsNull".
func Eq(index string, parts ...string) Query { return newComparison(opEqual, index, parts) }

// In matches objects with one of these values. The index must not be composite.
func In(index string, values ...string) Query {
	operands := naming.Map(values, func(text string) value { return value{parts: []string{text}} })
	return &comparison{op: opIn, index: index, values: operands}
}

// Less matches objects with a smaller value in a sorted index. For a composite index the first parts are
// sufficient, also in the three functions below.
func Less(index string, parts ...string) Query { return newComparison(opLess, index, parts) }

// AtMost matches objects with this value or a smaller one.
func AtMost(index string, parts ...string) Query { return newComparison(opAtMost, index, parts) }

// Greater matches objects with a greater value.
func Greater(index string, parts ...string) Query { return newComparison(opGreater, index, parts) }

// AtLeast matches objects with this value or a greater one.
func AtLeast(index string, parts ...string) Query { return newComparison(opAtLeast, index, parts) }

// Range matches objects with a value v, from <= v < to, in a sorted index that is not composite. An empty
// bound is open. One value must be within both bounds. And of two comparisons also matches an object with
// two values, of which each satisfies one comparison.
func Range(index, from, to string) Query {
	return &comparison{op: opRange, index: index, values: []value{{parts: []string{from}},
		{parts: []string{to}}}}
}

// Prefix matches objects with a value that begins with these parts in a composite index, or with this text in
// a sorted one. If all parts of a composite index are given, the last one is a text prefix.
func Prefix(index string, parts ...string) Query { return newComparison(opPrefix, index, parts) }

// Contains matches objects with a value that contains a text. It tests every value of the index, which is
// cheaper than testing every object. A composite value is tested as a query shows it: the parts joined by
// "/".
func Contains(index, text string) Query { return newSearch(opContains, index, text) }

// Matches matches objects with a value in which a regular expression (RE2, Go syntax) matches any part.
func Matches(index, expression string) Query { return newSearch(opMatches, index, expression) }

// Within matches objects with an address or an address range inside a prefix such as "10.0.0.0/8". The index
// must have type IP or CIDR.
func Within(index, prefix string) Query { return newSearch(opWithin, index, prefix) }

// Dangling matches objects whose reference of this name has no target. An empty name means any reference.
// Dangling, RefersTo and ReferredBy need [Querier.WithReferences].
func Dangling(reference string) Query {
	return &referenceQuery{kind: refDangling, reference: reference}
}

// RefersTo matches the objects that refer to an object, by the named reference; an empty name means any.
// RefersTo ignores the UID of the object.
func RefersTo(object references.Object, reference string) Query {
	return &referenceQuery{kind: refersTo, object: withTextFields(object), reference: reference}
}

// withTextFields returns o with only the fields that a query's text contains.
func withTextFields(o references.Object) references.Object {
	if o.UID = ""; o.Kind != "" {
		o.Resource = ""
	}
	return o
}

// ReferredBy matches the objects that an object refers to, by the named reference; an empty name means any.
func ReferredBy(object references.Object, reference string) Query {
	return &referenceQuery{kind: referredBy, object: withTextFields(object), reference: reference}
}

// Exists matches objects that have a value other than indexers.Null.
func Exists(index string) Query { return &comparison{op: opExists, index: index} }

// Missing matches objects without a value.
func Missing(index string) Query { return Not(Exists(index)) }

// Label matches objects by a label selector in the syntax of kubectl: "app=web,tier!=test".
func Label(selector string) Query {
	s, err := labels.Parse(selector)
	return &labelQuery{selector: s, err: err, text: selector}
}

// Selector works like Label for a parsed selector. A nil selector makes a query that always fails.
func Selector(selector labels.Selector) Query {
	if selector == nil {
		err := errors.New("the label selector is nil; labels.Everything() selects all objects")
		return &labelQuery{err: err, text: noQuery}
	}
	return &labelQuery{selector: selector, text: selector.String()}
}

// namespaceIndex is the name of the informers' index by namespace.
const namespaceIndex = "namespace"

// Namespace matches objects in one of these namespaces; "" selects cluster-scoped objects.
func Namespace(namespaces ...string) Query { return In(namespaceIndex, namespaces...) }

// Where matches objects by a condition of the path language, such as "@.spec.replicas > 2 && !@.spec.paused",
// or by a path such as .spec.paused that has to exist. It reads the body of each object that matches all
// other conditions.
func Where(condition string) Query { return newCondition(condition) }

// WhereCEL works like [Where] for a CEL expression on the object, self. It needs module cel. A query fails if
// the expression fails on an object, for example because a field is missing; a subscription sends [Failed].
func WhereCEL(expression string) Query { return newCELQuery(expression) }

func newCELQuery(text string) *celQuery {
	return &celQuery{text: text,
		compile: sync.OnceValues(func() (expression.Expression, error) { return expression.Compile(text) })}
}

func newCondition(text string) *condition {
	return &condition{text: text,
		compile: sync.OnceValues(func() (*jsonpath.Filter, error) { return jsonpath.CompileTest(text) })}
}

// newSearch returns a comparison with one text that is never split into parts.
func newSearch(op operator, index, text string) Query {
	return &comparison{op: op, index: index, values: []value{{parts: []string{text}, isJoinedText: true}}}
}

func newComparison(op operator, index string, parts []string) Query {
	return &comparison{op: op, index: index, values: []value{{parts: parts}}}
}
