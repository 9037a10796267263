package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
)

// columns are those of types with a CRD.
type columns struct {
	// loader fetches definitions each time; first has those that the command fetched already.
	loader, first *print.RowLoader
	// loaded are those that have been loaded ahead, for types that are there in the beginning.
	loaded map[schema.GroupVersionResource]print.Rows
}

// load loads the columns of those of the types that have a CRD, all at the same time.
func (c *columns) load(ctx context.Context, snapshot *discovery.Snapshot, resources []discovery.Resource) {
	var defined []discovery.Resource
	for _, r := range resources {
		if typeOf(snapshot, r).UID != "" {
			defined = append(defined, r)
		}
	}
	c.loaded = map[schema.GroupVersionResource]print.Rows{}
	for i, rows := range c.first.Load(ctx, defined) {
		c.loaded[defined[i].GVR] = rows
	}
}
