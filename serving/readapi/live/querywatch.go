package live

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/serving/readapi"
)

func (c *collection) watchQuery(
	w http.ResponseWriter, r *http.Request, request readapi.Request, q query.Query) error {
	matcher, err := query.NewMatcher(q, c.view.Declared()...)
	if err == nil { // the matcher does not know which fields the cache drops
		_, err = query.New(c.typeCache).Explain(q, query.Options{})
	}
	if err != nil {
		return apiError(err)
	}
	c.usesIndexes = true
	if err := c.awaitRequested(r, request); err != nil {
		return err
	}
	readapi.NewHandler(queryBackend{c, matcher}, c.server.options.Handler).ServeHTTP(w, r)
	return nil
}

// queryBackend is a backend with one type and the objects that match a query.
type queryBackend struct {
	*collection
	matcher *query.Matcher
}

var (
	_ readapi.Backend = queryBackend{}
	_ readapi.Filter  = queryBackend{}
)

func (q queryBackend) ServedTypes() ([]readapi.Type, uint64) { return nil, 0 }

func (q queryBackend) Collection(gr schema.GroupResource) readapi.Collection {
	if gr != q.gvr.GroupResource() {
		return nil
	}
	return q
}

func (q queryBackend) Selects(o readapi.Object) (bool, error) {
	stored, ok := o.(object)
	if !ok {
		return false, nil
	}
	matches, err := q.matcher.Match(stored.stored.Unstructured())
	if err != nil {
		return false, apiError(err)
	}
	return matches, nil
}
