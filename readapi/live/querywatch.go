package live

import (
	"iter"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi"
)

// watchQuery follows what a query finds: the objects of the type are those that it holds for, and others do not exist. All
// else is a watch as any other.
func (c *collection) watchQuery(w http.ResponseWriter, r *http.Request, asked readapi.Request, q query.Query) error {
	matcher, err := query.NewMatcher(q, c.indexes...)
	if err != nil {
		return explained(err)
	}
	if err := c.wait(r, asked); err != nil {
		return err
	}
	readapi.NewBackendHandler(found{c, matcher}, c.server.options.Handler).ServeHTTP(w, r)
	return nil
}

// found is a type as a backend with the objects that a query holds for.
type found struct {
	*collection
	matcher *query.Matcher
}

var (
	_ readapi.Backend    = found{}
	_ readapi.Collection = found{}
)

// ServedTypes implements readapi.Backend.
func (f found) ServedTypes() ([]readapi.Type, uint64) { return nil, 0 }

// Collection implements readapi.Backend.
func (f found) Collection(gr schema.GroupResource) readapi.Collection {
	if gr != f.gvr.GroupResource() {
		return nil
	}
	return f
}

// matches reports whether the query holds for an object, which may be nil.
func (f found) matches(o readapi.Object) bool {
	if o == nil {
		return false
	}
	stored, ok := o.(object)
	return ok && f.matcher.Match(stored.stored.Unstructured())
}

// Get implements readapi.Collection.
func (f found) Get(key string) readapi.Object {
	if o := f.collection.Get(key); f.matches(o) {
		return o
	}
	return nil
}

// Snapshot implements readapi.Collection.
func (f found) Snapshot(version uint64) readapi.Snapshot {
	if s := f.collection.Snapshot(version); s != nil {
		return foundSnapshot{s, f}
	}
	return nil
}

// Since implements readapi.Collection.
func (f found) Since(version uint64) readapi.Changes {
	changes := f.collection.Since(version)
	list := changes.List
	changes.List = nil
	for _, change := range list {
		if !f.matches(change.Before) {
			change.Before = nil
		}
		if !f.matches(change.After) {
			change.After = nil
			if change.Before == nil {
				continue
			}
		}
		changes.List = append(changes.List, change)
	}
	return changes
}

// foundSnapshot is the objects of a moment that the query holds for.
type foundSnapshot struct {
	readapi.Snapshot
	of found
}

// Range implements readapi.Snapshot.
func (s foundSnapshot) Range(from, to string) iter.Seq[readapi.Object] {
	return func(yield func(readapi.Object) bool) {
		for o := range s.Snapshot.Range(from, to) {
			if s.of.matches(o) && !yield(o) {
				return
			}
		}
	}
}

// Count implements readapi.Snapshot.
func (s foundSnapshot) Count(from, to string) int {
	n := 0
	for range s.Range(from, to) {
		n++
	}
	return n
}
