package store

import "github.com/crdcache/crdcache/internal/packed"

// sizes add up what the objects of a snapshot occupy, row by row as these change, so that nobody has to look at all of
// them to know.
type sizes struct {
	// packed are the bytes of packed objects, of which compressed are compressed.
	packed     int64
	compressed int
	// decoded counts the objects that are not packed, whose bytes are extrapolated.
	decoded int
	// replaced counts the rows that were put in or taken out.
	replaced int64
}

// replace takes old out and puts next in; either may be nil.
func (z *sizes) replace(old, next *row) {
	if old != nil {
		z.count(old.item, -1)
	}
	if next != nil {
		z.count(next.item, 1)
	}
	z.replaced++
}

func (z *sizes) count(item Item, by int) {
	o, ok := item.(*packed.Object)
	if !ok {
		z.decoded += by
		return
	}
	z.packed += int64(by * o.Size())
	if o.Compressed() {
		z.compressed += by
	}
}
