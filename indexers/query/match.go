package query

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// Matcher tests single objects against a query. It is safe for concurrent use.
type Matcher struct {
	query  Query
	schema schema
	now    func() time.Time
}

// NewMatcher compiles a query for single objects. indexes are the indexes in the query, possibly with others;
// the index by namespace is built in. NewMatcher returns the same errors as [Querier.Query]. It also fails
// for a condition about references; use references.Graph.Subscribe. Match evaluates relative times when it
// is called: the passage of time alone causes no event.
func NewMatcher(query Query, indexes ...*indexers.Index) (*Matcher, error) {
	m := &Matcher{query: query, schema: newSchema(indexes), now: time.Now}
	if err := m.check(nil); err != nil {
		return nil, err
	}
	return m, nil
}

// check returns the errors of the query for objects that lack some fields.
func (m *Matcher) check(drops func(field string) bool) error {
	_, err := m.compiler(&unstructured.Unstructured{}, drops).compile(m.query)
	return err
}

// Match reports whether the query matches an object. It returns the error of a CEL expression that fails on
// the object.
func (m *Matcher) Match(object *unstructured.Unstructured) (bool, error) {
	c := m.compiler(object, nil)
	condition, err := c.compile(m.query)
	if err != nil {
		return false, err
	}
	matches := condition.matches(keyOf(object), object)
	return matches && c.meter.err == nil, c.meter.err
}

// Warnings describes why earlier results of Match may be wrong or incomplete, like the warnings of a [Plan].
func (m *Matcher) Warnings() []string {
	c := m.compiler(&unstructured.Unstructured{}, nil)
	if _, err := c.compile(m.query); err != nil {
		return nil // NewMatcher has returned the error
	}
	return c.warnings
}

func keyOf(object *unstructured.Unstructured) string { return cache.MetaObjectToName(object).String() }

// compiler compiles the query for one object. drops is as in objectSnapshot.
func (m *Matcher) compiler(object *unstructured.Unstructured, drops func(field string) bool) *compiler {
	return &compiler{schema: m.schema, snapshot: objectSnapshot{m, object, drops}, now: m.now(),
		meter: &workMeter{ctx: context.Background(), remaining: workBetweenChecks}}
}

type objectSnapshot struct {
	*Matcher
	object *unstructured.Unstructured
	drops  func(field string) bool // nil: no field
}

func (s objectSnapshot) Drops(field string) bool { return s.drops != nil && s.drops(field) }

func (s objectSnapshot) Dropped(index string) uint64 {
	if d := s.schema[index]; d != nil {
		return d.functions.Dropped(index)
	}
	return 0
}

func (s objectSnapshot) Freshness() Freshness { return Freshness{Synced: true} }

func (s objectSnapshot) Len() int { return 1 }

func (s objectSnapshot) Get(key string) (any, bool) { return s.object, key == keyOf(s.object) }

func (s objectSnapshot) All(yield func(string, any) bool) { yield(keyOf(s.object), s.object) }

func (s objectSnapshot) IndexNames() []string {
	return slices.AppendSeq([]string{namespaceIndex}, maps.Keys(s.schema))
}

func (s objectSnapshot) Index(name string) (Index, bool) {
	keys := []string{s.object.GetNamespace()}
	if d := s.schema[name]; d != nil {
		keys = d.functions.Keys(s.object)[0]
		slices.Sort(keys)
	} else if name != namespaceIndex {
		return nil, false
	}
	return objectIndex{keys, s.object}, true
}

type objectIndex struct {
	keys   []string
	object *unstructured.Unstructured
}

func (o objectIndex) Len() int { return len(o.keys) }

func (o objectIndex) Count(key string) int {
	if slices.Contains(o.keys, key) {
		return 1
	}
	return 0
}

func (o objectIndex) Has(key, object string) bool {
	return o.Count(key) > 0 && object == keyOf(o.object)
}

func (o objectIndex) Objects(key string, yield func(string, any) bool) {
	if o.Count(key) > 0 {
		yield(keyOf(o.object), o.object)
	}
}

func (o objectIndex) Keys(from, to string, descending bool, yield func(string, int) bool) {
	rangeKeys(o.keys, from, to, descending, func(key string) bool { return yield(key, 1) })
}
