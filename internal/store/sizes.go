package store

import "github.com/crdcache/crdcache/internal/packed"

// sizes are totals of a snapshot's objects, updated with each change of a row.
type sizes struct {
	// packed is the size of packed objects and of complete blocks with such objects, in bytes.
	// compressedBytes is the size of the compressed ones.
	packed, compressedBytes int64
	compressed              int
	// decoded is the number of objects that are not packed.
	decoded int
	// replaced is the number of rows added or removed so far.
	replaced int64
}

// uncompressed returns the size of packed, uncompressed objects in bytes.
func (z *sizes) uncompressed() int64 { return z.packed - z.compressedBytes }

// countPacked counts a packed object that is not in a block.
func (z *sizes) countPacked(o *packed.Object, by int) {
	size := int64(by * o.Size())
	z.packed += size
	if o.Compressed() {
		z.compressed += by
		z.compressedBytes += size
	}
}

// countBlock counts the memory of a block, but not its objects.
func (z *sizes) countBlock(b *packed.Block, by int) {
	size := int64(by * b.Size())
	z.packed += size
	z.compressedBytes += size
}
