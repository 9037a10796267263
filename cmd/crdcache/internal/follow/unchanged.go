package follow

import (
	"maps"
	"reflect"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/query"
)

// unchanged reports whether an event tells of nothing but a row that was printed anew, as of each object that is
// listed again after a broken connection: its age is another. Without a row, a query tells of no such event.
func unchanged(e query.Event) bool {
	if e.Type != query.Modified || e.Old == nil || e.Old.GetResourceVersion() != e.Object.GetResourceVersion() {
		return false
	}
	return reflect.DeepEqual(withoutRow(e.Old.Object), withoutRow(e.Object.Object))
}

// withoutRow is an object without what the server printed of it.
func withoutRow(object map[string]any) map[string]any {
	if _, ok := object[print.PrintedField]; !ok {
		return object
	}
	object = maps.Clone(object)
	delete(object, print.PrintedField)
	return object
}
