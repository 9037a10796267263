package store

import (
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// Extractor computes the values of several indexes of an object in one pass over its JSON, so that it need
// not be decoded. It is safe for concurrent use; the indexers.Functions that a config compiles to are one.
type Extractor interface {
	// Names are the names of the indexes, always in the same order.
	Names() []string
	// Ordered reports whether index number i should be kept in the order of its values.
	Ordered(i int) bool
	// Indexers are the index functions by name, for objects that are decoded. They have to agree with
	// KeysJSON.
	Indexers() cache.Indexers
	// KeysJSON appends the values of index number i to keys[i], and makes keys as long as there are indexes.
	// The values do not refer to the JSON.
	KeysJSON(json []byte, keys [][]string) [][]string
}

// extracting adds the functions of an extractor.
func extracting(e Extractor) addition {
	return func(next int) functions {
		fs := make(functions, 0, len(e.Names()))
		byName := e.Indexers()
		for i, name := range e.Names() {
			f := newFunction(name, next+i, byName[name])
			f.extractor, f.at, f.sorted = e, i, e.Ordered(i)
			fs = append(fs, f)
		}
		return fs
	}
}

// extraction holds what the last extractor had of one item.
type extraction struct {
	extractor Extractor
	values    [][]string
}

// of gets the values of an item. It is false for an item that is decoded, or cannot be read.
func (x *extraction) of(e Extractor, item Item) bool {
	o, ok := item.(*packed.Object)
	if !ok {
		return false
	}
	if x.extractor == e {
		return x.values != nil
	}
	x.extractor, x.values = e, nil
	err := o.Peek(func(json []byte) (err error) {
		defer Recover(&err)
		x.values = e.KeysJSON(json, nil)
		return nil
	})
	return err == nil
}
