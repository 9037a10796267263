package store

import "github.com/crdcache/crdcache/internal/packed"

// sizes add up what the objects of a snapshot occupy, row by row as these change, so that nobody has to look at all of
// them to know.
type sizes struct {
	// packed are the bytes of packed objects. Of these, compressed are compressed, which come to compressedBytes.
	packed, compressedBytes int64
	compressed              int
	// decoded counts the objects that are not packed, whose bytes are extrapolated.
	decoded int
	// replaced counts the rows that were put in or taken out.
	replaced int64
}

// replace takes old out and puts next in; either may be nil.
func (z *sizes) replace(old, next *row) {
	if old != nil {
		z.count(old.keptItem(), -1)
	}
	if next != nil {
		z.count(next.keptItem(), 1)
	}
	z.replaced++
}

// plain is what the objects come to that are packed and not compressed.
func (z *sizes) plain() int64 { return z.packed - z.compressedBytes }

func (z *sizes) count(item Item, by int) {
	if o, ok := item.(*packed.Object); ok {
		z.countPacked(o, by)
	} else {
		z.decoded += by
	}
}

func (z *sizes) countPacked(o *packed.Object, by int) {
	size := int64(by * o.Size())
	z.packed += size
	if o.Compressed() {
		z.compressed += by
		z.compressedBytes += size
	}
}
