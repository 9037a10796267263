package store

import "github.com/crdcache/crdcache/internal/packed"

// sizes add up what the objects of a snapshot occupy, row by row as these change, so that nobody has to look
// at all of them to know.
type sizes struct {
	// packed are the bytes of packed objects, and of blocks as a whole that have some of them. Of these,
	// compressed are compressed, which come to compressedBytes.
	packed, compressedBytes int64
	compressed              int
	// decoded counts the objects that are not packed, whose bytes are extrapolated.
	decoded int
	// replaced counts the rows that were put in or taken out.
	replaced int64
}

// plain is what the objects come to that are packed and not compressed.
func (z *sizes) plain() int64 { return z.packed - z.compressedBytes }

// countPacked counts a packed object that is in no block.
func (z *sizes) countPacked(o *packed.Object, by int) {
	size := int64(by * o.Size())
	z.packed += size
	if o.Compressed() {
		z.compressed += by
		z.compressedBytes += size
	}
}

// countBlock counts a block as a whole, but not its objects.
func (z *sizes) countBlock(b *packed.Block, by int) {
	size := int64(by * b.Held())
	z.packed += size
	z.compressedBytes += size
}
