package query

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// Matcher tells whether a query holds for a single object. It may be used from any number of goroutines.
type Matcher struct {
	query  Query
	schema schema
	clock  func() time.Time
}

// NewMatcher prepares a query for single objects. The indexes are those that the query names, and may be
// more; the index by namespace is always there. Errors are those of [Querier.Query]. What a query says about
// references cannot be known of a single object and is an error, too; see references.Graph.Subscribe. Times
// relative to now are those of each call of Match: that an object begins to match as time goes by is no
// event.
func NewMatcher(query Query, indexes ...*indexers.Index) (*Matcher, error) {
	m := &Matcher{query: query, schema: newSchema(indexes), clock: time.Now}
	// An object without anything shows all that is wrong with the query.
	if _, err := m.compile(&unstructured.Unstructured{}); err != nil {
		return nil, err
	}
	return m, nil
}

// Match tells whether the query holds for an object.
func (m *Matcher) Match(object *unstructured.Unstructured) bool {
	c, err := m.compile(object)
	return err == nil && c.holds(keyOf(object), object)
}

// Warnings say why what was matched so far may not be what was meant, as those of a [Plan] do.
func (m *Matcher) Warnings() []string {
	c := compiler{schema: m.schema, snapshot: objectSnapshot{m, &unstructured.Unstructured{}}, now: m.clock()}
	if _, err := c.compile(m.query); err != nil {
		return nil // NewMatcher has returned it
	}
	return c.warnings
}

func keyOf(object *unstructured.Unstructured) string { return cache.MetaObjectToName(object).String() }

// compile makes conditions of the query for one object, which is a cache of its own.
func (m *Matcher) compile(object *unstructured.Unstructured) (cond, error) {
	c := compiler{schema: m.schema, snapshot: objectSnapshot{m, object}, now: m.clock()}
	return c.compile(m.query)
}

type objectSnapshot struct {
	*Matcher
	object *unstructured.Unstructured
}

// Dropped implements dropper.
func (s objectSnapshot) Dropped(index string) uint64 {
	if d := s.schema[index]; d != nil {
		return d.functions.Dropped(index)
	}
	return 0
}

func (s objectSnapshot) Stamp() Stamp { return Stamp{Synced: true} }

func (s objectSnapshot) Len() int { return 1 }

func (s objectSnapshot) Get(key string) (any, bool) { return s.object, key == keyOf(s.object) }

func (s objectSnapshot) All(yield func(string, any) bool) { yield(keyOf(s.object), s.object) }

func (s objectSnapshot) IndexNames() []string {
	names := []string{namespaceIndex}
	for name := range s.schema {
		names = append(names, name)
	}
	return names
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

// objectIndex holds the sorted keys of one object.
type objectIndex struct {
	keys   []string
	object *unstructured.Unstructured
}

func (x objectIndex) Len() int { return len(x.keys) }

func (x objectIndex) Count(key string) int {
	if slices.Contains(x.keys, key) {
		return 1
	}
	return 0
}

func (x objectIndex) Has(key, object string) bool {
	return x.Count(key) > 0 && object == keyOf(x.object)
}

func (x objectIndex) Objects(key string, yield func(string, any) bool) {
	if x.Count(key) > 0 {
		yield(keyOf(x.object), x.object)
	}
}

func (x objectIndex) Keys(from, to string, descending bool, yield func(string, int) bool) {
	for i := range x.keys {
		key := x.keys[i]
		if descending {
			key = x.keys[len(x.keys)-1-i]
		}
		if key >= from && (to == "" || key < to) && !yield(key, 1) {
			return
		}
	}
}
