package store

import "github.com/crdcache/crdcache/internal/packed"

// Pair returns what Object does for an item before and after an update. Where both have to be decoded, that is done
// in one go, and what has not changed is one and the same in both objects.
func (f *Packed) Pair(before, after Item) (previous, current any) {
	x, packs := before.(*packed.Object)
	y, alsoPacks := after.(*packed.Object)
	if !packs || !alsoPacks || x == y {
		return f.Object(before), f.Object(after)
	}
	f.count(x)
	f.count(y)
	return packed.Pair(x, y)
}

// count notes whether an object that is about to be read has to be decoded.
func (f *Packed) count(o *packed.Object) {
	if o.Decoded() != nil {
		f.hits.Add(1)
	} else {
		f.misses.Add(1)
	}
}
