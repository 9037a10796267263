package bind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Target is a type that a resource of a config means, with the informer that follows it.
type Target struct {
	// Resource is what the config says.
	Resource *indexers.Resource
	// GVR is the type that was asked for.
	GVR schema.GroupVersionResource
	// Informer follows it. After the resource or the binding is gone it may be stopped at any time.
	Informer *dynamicinformer.Informer

	handle *dynamicinformer.Handle
	// functions are the indexes, those that were changed later on their own.
	functions []*indexers.Functions
}

// Querier answers queries over the target.
func (t *Target) Querier() *query.Querier {
	return query.New(query.ForInformer(t.Informer), t.Resource.Indexes...)
}

// Duplicates gives the values that more than one object has, the most frequent first, of each index that the config
// declares unique, by its name. Indexes without such values are left out.
func (t *Target) Duplicates(ctx context.Context) (map[string][]query.ValueCount, error) {
	querier := t.Querier()
	out := map[string][]query.ValueCount{}
	for _, index := range t.Resource.Indexes {
		if !index.Unique {
			continue
		}
		values, err := querier.Duplicates(ctx, index.Name)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[index.Name] = values
		}
	}
	return out, nil
}

// Stats say what each index met so far, in the order of the config.
func (t *Target) Stats() []indexers.Stats {
	byName := map[string]indexers.Stats{}
	for _, f := range t.functions { // the newest last
		for _, s := range f.Stats() {
			byName[s.Index] = s
		}
	}
	out := make([]indexers.Stats, 0, len(t.Resource.Indexes))
	for _, index := range t.Resource.Indexes {
		out = append(out, byName[index.Name])
	}
	return out
}
