package store

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// Extractor computes the values of several indexes in one pass over an object's JSON, without decoding it. It
// is safe for concurrent use. indexers.Functions, compiled from a config, implements it.
type Extractor interface {
	// Names returns the names of the indexes, always in the same order.
	Names() []string
	// Ordered reports whether to keep index i sorted by value.
	Ordered(i int) bool
	// Indexers returns index functions by name, for decoded objects, with the values of KeysJSON.
	Indexers() cache.Indexers
	// KeysJSON appends the values of index i to keys[i] and returns keys, extended to the number of indexes.
	// The values do not share the memory of json.
	KeysJSON(json []byte, keys [][]string) [][]string
}

func extractorFunctions(e Extractor) functionFactory {
	return func(firstID int) functions {
		fs := make(functions, 0, len(e.Names()))
		byName := e.Indexers()
		for i, name := range e.Names() {
			f := newFunction(name, firstID+i, byName[name])
			f.extractor, f.position, f.sorted = e, i, e.Ordered(i)
			fs = append(fs, f)
		}
		return fs
	}
}

// BuildObserver is an Extractor that can end the addition of its indexes. CheckBuild is called after each
// existing object. After an error, no index is added.
type BuildObserver interface {
	Extractor
	CheckBuild() error
}

// extraction caches the values that the last extractor returned for one item.
type extraction struct {
	extractor Extractor
	values    [][]string
}

// extractItem extracts the values of an item. It returns false if the item is decoded or cannot be read.
func (x *extraction) extractItem(e Extractor, item Item) bool {
	o, ok := item.(*packed.Object)
	if !ok {
		return false
	}
	if x.extractor == e {
		return x.values != nil
	}
	x.extractor, x.values = e, nil
	err := o.PeekJSON(func(json []byte) (err error) {
		defer RecoverError(&err)
		x.values = e.KeysJSON(json, nil)
		return nil
	})
	return err == nil
}
