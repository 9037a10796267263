package session

import (
	"context"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// IndexStats says what indexes meet in the objects that are cached at this moment, each looked at once, in the order
// of their keys. What the informer's own functions counted is not that: they see an object each time it changes.
func (c Cache) IndexStats(ctx context.Context, indexes []*indexers.Index) ([]indexers.Stats, error) {
	functions := indexers.CompileIndexes(indexes...)
	snapshot := c.Informer.Snapshot()
	keys := snapshot.Keys()
	slices.Sort(keys)
	var values [][]string
	for _, key := range keys {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		item, _ := snapshot.Stored(key) // the snapshot does not change
		object, ok := item.(dynamicinformer.PackedObject)
		if !ok {
			functions.Keys(item)
			continue
		}
		err := object.View(func(json []byte) error {
			for i := range values {
				values[i] = values[i][:0]
			}
			values = functions.KeysJSON(json, values)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return functions.Stats(), nil
}
