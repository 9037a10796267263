package live

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/readapi"
)

// watchQuery serves a watch of the objects that a query holds for.
func (c *collection) watchQuery(
	w http.ResponseWriter, r *http.Request, asked readapi.Request, q query.Query,
) error {
	matcher, err := query.NewMatcher(q, c.indexes...)
	if err != nil {
		return explained(err)
	}
	if err := c.wait(r, asked); err != nil {
		return err
	}
	readapi.NewHandler(found{c, matcher}, c.server.options.Handler).ServeHTTP(w, r)
	return nil
}

// found is a backend with one type. It serves the objects that a query holds for.
type found struct {
	*collection
	matcher *query.Matcher
}

var (
	_ readapi.Backend = found{}
	_ readapi.Filter  = found{}
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

// Selects implements readapi.Filter.
func (f found) Selects(o readapi.Object) bool {
	stored, ok := o.(object)
	return ok && f.matcher.Match(stored.stored.Unstructured())
}
