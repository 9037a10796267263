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

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

var errNoQuery = errors.New("there is no query")

// Querier answers queries over one source. It is safe for concurrent use.
type Querier struct {
	source Source
	schema schema
	// latest is the schema of the last snapshot that had declarations of its own.
	latest     *atomic.Pointer[declarations]
	references *references.View
	// misfits gives what does not fit the schema of the type; nil where that is not known.
	misfits func(query Query, columns []string) []string
	// types returns the type of a path by the schema of the type; nil if that is not known.
	types func(path string) string
}

// New returns a Querier over a source. The indexes describe what those of the source hold, by name; one that
// is not described holds text. They may be more than the source has.
func New(source Source, indexes ...*indexers.Index) *Querier {
	return &Querier{source: source, schema: newSchema(indexes), latest: &atomic.Pointer[declarations]{}}
}

// declaring is a snapshot that knows what its indexes hold. Its declarations take the place of those of
// [New].
type declaring interface {
	Declared() []*indexers.Index
}

type declarations struct {
	indexes []*indexers.Index
	schema  schema
}

// schemaOf returns what the indexes of a snapshot hold.
func (q *Querier) schemaOf(s Snapshot) schema {
	d, ok := s.(declaring)
	if !ok {
		return q.schema
	}
	declared := d.Declared()
	latest := q.latest.Load()
	if latest == nil || !slices.Equal(latest.indexes, declared) {
		latest = &declarations{declared, newSchema(declared)}
		q.latest.Store(latest)
	}
	return latest.schema
}

// WithReferences returns a Querier over the same source that answers what a query says about references, too.
// The view is of the type of the source's objects; it is of another moment than the source, but each query
// asks it once.
func (q *Querier) WithReferences(view *references.View) *Querier {
	with := *q
	with.references = view
	return &with
}

// Options say how a query is answered. The zero value gives everything at once, in the order of namespace and
// name, and no full scan.
type Options struct {
	// SortBy is the name of a sorted index, a path such as .spec.replicas, or one of name, namespace and age
	// (the youngest first), or several of these with commas, the most important first. Each may be followed
	// by asc or desc: "team, expiry desc". By a path, numbers and quantities come before times, and these
	// before other text; it is looked up in each object that is found. An object with several values counts
	// with the first in the order; those without any come last. Objects with the same values are in the order
	// of namespace and name.
	SortBy string
	// Descending turns the order of all values around. It needs SortBy.
	Descending bool
	// Limit is how many objects are given at most; 0 stands for all.
	Limit int
	// Continue is the token of an earlier result of the same query, whose next objects are given.
	Continue string
	// Now is what "now" in the values of a query stands for; zero stands for the present.
	Now time.Time
	// AllowScan lets a query look at every object when no index leads to fewer. [All] alone needs no leave.
	AllowScan bool
	// Yield is called between pieces of work, of a millisecond at most in the usual case. Its error ends the
	// query. Default: nothing is called.
	Yield func(context.Context) error
}

// Query gives the objects that a query holds for. Errors are typed: [UnknownIndexError], [UnsortedError],
// [SortError], [ScanError], ErrNoReferences, [indexers.OperandError], ErrContinue, that of ctx, and [Error]
// around them for queries that were text.
func (q *Querier) Query(ctx context.Context, query Query, options Options) (*Result, error) {
	x, err := q.prepare(ctx, query, options)
	if err != nil {
		return nil, err
	}
	return x.run()
}

// Count counts the objects that a query holds for; Limit, Continue and the order do not matter.
func (q *Querier) Count(ctx context.Context, query Query, options Options) (int, error) {
	x, err := q.prepare(ctx, query, Options{AllowScan: options.AllowScan, Now: options.Now,
		Yield: options.Yield})
	if err != nil {
		return 0, err
	}
	return x.count()
}

// Explain says how a query would be answered, without looking at objects.
func (q *Querier) Explain(query Query, options Options) (*Plan, error) {
	options.AllowScan = true // which the plan says
	x, err := q.prepare(context.Background(), query, options)
	if err != nil {
		return nil, err
	}
	return x.plan, nil
}

// Get returns the object of a key: namespace/name, or the name of what has no namespace. It is shared and
// must not be changed.
func (q *Querier) Get(key string) (*unstructured.Unstructured, bool) {
	item, ok := q.source.Snapshot().Get(key)
	if !ok {
		return nil, false
	}
	return objectOf(item), true
}

// ByIndex gives the objects with a value; see [Eq].
func (q *Querier) ByIndex(index string, parts ...string) (*Result, error) {
	return q.Query(context.Background(), Eq(index, parts...), Options{})
}

// Range gives the objects with a value from one on and before another, in the order of the values; see
// [Range].
func (q *Querier) Range(index, from, to string) (*Result, error) {
	return q.Query(context.Background(), Range(index, from, to), Options{SortBy: index})
}

// Prefix gives the objects with a value that begins like this; see [Prefix].
func (q *Querier) Prefix(index string, parts ...string) (*Result, error) {
	return q.Query(context.Background(), Prefix(index, parts...), Options{})
}

// Keys gives the keys of the objects that a query holds for, in the order that the options ask for.
func (q *Querier) Keys(ctx context.Context, query Query, options Options) ([]string, error) {
	r, err := q.Query(ctx, query, options)
	if err != nil {
		return nil, err
	}
	return r.Keys(), nil
}

// Stamp says how recent the present content of the source is.
func (q *Querier) Stamp() Stamp { return q.source.Snapshot().Stamp() }

// Result is what a query found. It holds on to the objects as they were kept, and decodes them when they are
// read.
type Result struct {
	// Stamp says how recent all of this is.
	Stamp Stamp
	// Plan says how it was found.
	Plan *Plan
	// Continue is the token for what comes next; empty when nothing does.
	Continue string

	entries []entry
}

// entry is an object that was found.
type entry struct {
	key  string
	item any
}

// Len counts the objects.
func (r *Result) Len() int { return len(r.entries) }

// Keys gives the keys of the objects: namespace/name, or the name of what has no namespace. Keeping them
// keeps nothing else in memory.
func (r *Result) Keys() []string {
	keys := make([]string, len(r.entries))
	for i, e := range r.entries {
		keys[i] = strings.Clone(e.key)
	}
	return keys
}

// All gives the objects in order, each with its key. They are shared and must not be changed. Each is decoded
// when it is its turn, so that memory does not grow with the result.
func (r *Result) All() iter.Seq2[string, *unstructured.Unstructured] {
	return func(yield func(string, *unstructured.Unstructured) bool) {
		for _, e := range r.entries {
			if !yield(strings.Clone(e.key), objectOf(e.item)) {
				return
			}
		}
	}
}

// AllJSON calls read for each object in order, with its key and its JSON, which is good until read returns
// and must not be changed, and returns the first error, its own or that of read. Where objects are kept as
// JSON nothing is decoded.
func (r *Result) AllJSON(read func(key string, text []byte) error) error {
	for _, e := range r.entries {
		if o, ok := e.item.(dynamicinformer.PackedObject); ok {
			if err := o.View(func(text []byte) error { return read(e.key, text) }); err != nil {
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

// Objects gives all objects in order, decoded. They are shared and must not be changed.
func (r *Result) Objects() []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, len(r.entries))
	for i, e := range r.entries {
		objects[i] = objectOf(e.item)
	}
	return objects
}
