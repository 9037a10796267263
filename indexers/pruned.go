package indexers

import "github.com/crdcache/crdcache/indexers/internal/config"

// EffectivePrune gives what is cut out of objects that are kept: what Prune says, without what an index reads,
// since an index could not be computed of an object that lacks it.
func (r *Resource) EffectivePrune() Prune {
	return Prune(config.Prune(r.Prune).Without(r.declared.AllIndexes()))
}
