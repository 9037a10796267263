package query

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

var errNoQuery = errors.New("the query is nil; query.All() selects all objects")

// Querier answers queries over one source. It is safe for concurrent use.
type Querier struct {
	source Source
	schema schema
	// latestDeclarations is the schema of the latest snapshot that declares its own indexes.
	latestDeclarations *atomic.Pointer[declarations]
	references         *references.TypeGraph
	// definition and version are the schema of the objects; nil if it is unknown.
	definition *crd.Definition
	version    string
}

// New returns a Querier over a source. indexes describe the source's indexes by name. The source's other
// indexes contain text. Querier ignores descriptions of indexes that the source lacks.
func New(source Source, indexes ...*indexers.Index) *Querier {
	return &Querier{source: source, schema: newSchema(indexes),
		latestDeclarations: &atomic.Pointer[declarations]{}}
}

// declaringSnapshot is a snapshot that declares its indexes. Its declarations replace the indexes of [New].
type declaringSnapshot interface {
	Declared() []*indexers.Index
}

type declarations struct {
	indexes []*indexers.Index
	schema  schema
}

func (q *Querier) schemaOf(s Snapshot) schema {
	d, ok := s.(declaringSnapshot)
	if !ok {
		return q.schema
	}
	declared := d.Declared()
	latest := q.latestDeclarations.Load()
	if latest == nil || !slices.Equal(latest.indexes, declared) {
		latest = &declarations{declared, newSchema(declared)}
		q.latestDeclarations.Store(latest)
	}
	return latest.schema
}

// WithReferences returns a Querier over the same source that also answers conditions about references. The
// graph must be of the type of the source's objects. Each query reads the graph once, slightly before or
// after the source.
func (q *Querier) WithReferences(graph *references.TypeGraph) *Querier {
	extended := *q
	extended.references = graph
	return &extended
}

// Options control how a query is answered. The zero value returns all objects, ordered by namespace and name,
// and forbids full scans.
type Options struct {
	// SortBy is a comma-separated list of terms, the most important first. A term is the name of a sorted
	// index, a path such as .spec.replicas, or name, namespace or age (youngest first). It may be followed by
	// asc or desc: "team, expiry desc".
	//
	// A path is read in each matching object; numbers and quantities come before times, and times before
	// other text. An object with several values is sorted by the first one in the order. Objects without a
	// value come last. Objects with equal values are ordered by namespace and name.
	SortBy string
	// Descending reverses the order of all values. It needs SortBy.
	Descending bool
	// Limit is the maximum number of objects; 0 means unlimited.
	Limit int
	// Continue is the token of an earlier result of the same query. The result continues after it.
	Continue string
	// Now is the time of "now" in the values of a query. Default: the current time.
	Now time.Time
	// AllowScan allows a query to test every object if no index narrows it. [All] alone does not need it.
	AllowScan bool
	// Yield is called between units of work, usually at least once a millisecond. Its error ends the query.
	// Optional.
	Yield func(context.Context) error
}

// unordered returns the options that affect which objects match.
func (o Options) unordered() Options {
	return Options{AllowScan: o.AllowScan, Now: o.Now, Yield: o.Yield}
}

// Query returns the matching objects. Errors are typed: [UnknownIndexError], [DroppedFieldError],
// [UnsortedError], [SortError], [ScanError], ErrNoReferences, [indexers.OperandError], ErrContinue, the cause
// of ctx's end, and [Error] around them for queries that were parsed.
func (q *Querier) Query(ctx context.Context, query Query, options Options) (*Result, error) {
	x, err := q.prepare(ctx, query, options)
	if err != nil {
		return nil, err
	}
	return x.run()
}

// Count returns the number of matching objects; Limit, Continue and the sort order are ignored.
func (q *Querier) Count(ctx context.Context, query Query, options Options) (int, error) {
	x, err := q.prepare(ctx, query, options.unordered())
	if err != nil {
		return 0, err
	}
	return x.countMatches()
}

// Explain returns the plan of a query without reading objects.
func (q *Querier) Explain(query Query, options Options) (*Plan, error) {
	options.AllowScan = true // the plan shows the scan
	x, err := q.prepare(context.Background(), query, options)
	if err != nil {
		return nil, err
	}
	return x.plan, nil
}

// Get returns the object of a key, which is namespace/name, or the name of a cluster-scoped object. The
// object is shared and must not be changed.
func (q *Querier) Get(key string) (*unstructured.Unstructured, bool) {
	item, ok := q.source.Snapshot().Get(key)
	if !ok {
		return nil, false
	}
	return objectOf(item), true
}

// ByIndex returns the objects with a value; see [Eq].
func (q *Querier) ByIndex(index string, parts ...string) (*Result, error) {
	return q.Query(context.Background(), Eq(index, parts...), Options{})
}

// Keys returns the keys of the matching objects in the order of the options.
func (q *Querier) Keys(ctx context.Context, query Query, options Options) ([]string, error) {
	r, err := q.Query(ctx, query, options)
	if err != nil {
		return nil, err
	}
	return r.Keys(), nil
}

// Freshness returns how recent the source's current content is.
func (q *Querier) Freshness() Freshness { return q.source.Snapshot().Freshness() }

// Result is the answer to a query. It references the objects as they are stored, and decodes them when they
// are read.
type Result struct {
	Freshness Freshness
	Plan      *Plan
	// Continue is the token of the next page; empty on the last page.
	Continue string

	entries []entry
}

type entry struct {
	key  string
	item any
}

// Len returns the number of objects.
func (r *Result) Len() int { return len(r.entries) }

// Range returns the objects from one position to before another one.
func (r *Result) Range(from, to int) *Result {
	return &Result{r.Freshness, r.Plan, r.Continue, r.entries[from:to]}
}

// Keys returns the keys of the objects: namespace/name, or the name of a cluster-scoped object. They do not
// pin the objects in memory.
func (r *Result) Keys() []string {
	return naming.Texts(r.entries, func(e entry) string { return strings.Clone(e.key) })
}

// All iterates over the objects in order, each with its key. Each object is decoded when it is reached, so
// that memory does not grow with the result. Objects are shared and must not be changed.
func (r *Result) All() iter.Seq2[string, *unstructured.Unstructured] {
	return func(yield func(string, *unstructured.Unstructured) bool) {
		for _, e := range r.entries {
			if !yield(strings.Clone(e.key), objectOf(e.item)) {
				return
			}
		}
	}
}

// AllJSON calls read for each object in order, with its key and its JSON, which is valid until read returns
// and must not be changed. It returns the first error. Objects that are stored as JSON are not decoded.
func (r *Result) AllJSON(read func(key string, text []byte) error) error {
	for _, e := range r.entries {
		if o, ok := e.item.(packedObject); ok {
			if err := o.ReadJSON(func(text []byte) error { return read(e.key, text) }); err != nil {
				return err
			}
			continue
		}
		text, err := json.Marshal(objectOf(e.item))
		if err == nil {
			err = read(e.key, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Objects returns all objects in order, decoded. They are shared and must not be changed.
func (r *Result) Objects() []*unstructured.Unstructured {
	return naming.Map(r.entries, func(e entry) *unstructured.Unstructured { return objectOf(e.item) })
}
