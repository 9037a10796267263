package store

import "github.com/crdcache/crdcache/internal/packed"

// blocks tracks the blocks that contain objects of the content. A block stays in memory until all its objects
// have been replaced. The same applies to segments. Changes are guarded by Store.write and update the sizes
// too. The zero value is empty.
type blocks struct {
	usage  map[*packed.Block]*blockUsage
	sparse map[*packed.Block]struct{}
	// segments maps the segments to the length of the bodies of the content in them.
	segments map[*packed.Segment]int64
}

// blockUsage is the part of a block that the content uses.
type blockUsage struct {
	liveObjects   int // objects in the content
	replacedBytes int // size of the other objects in bytes
	// threshold is the number of replaced bytes at which the block becomes sparse.
	threshold int
}

// replace updates the sizes for the replacement of old by next. Either can be nil.
func (b *blocks) replace(z *objectSizes, old, next *storedRow) {
	if next != nil && !next.isIdentity() { // first, because it may be in the same block
		b.count(z, next.item(), 1)
	}
	if old != nil && !old.isIdentity() {
		b.count(z, old.item(), -1)
	}
	z.replaced++
}

// count adds an item to the sizes (by = 1) or removes it (by = -1).
func (b *blocks) count(z *objectSizes, item Item, by int) {
	o, ok := item.(*packed.Object)
	if !ok {
		z.decoded += by
		return
	}
	block := o.Block()
	if block == nil {
		z.countPacked(o, by)
		b.countMapped(z, o, by)
		return
	}
	h := b.usageOf(z, block)
	h.liveObjects += by
	h.replacedBytes -= by * o.Size()
	z.compressed += by
	b.update(z, block, h)
}

// countMapped counts an object if its body is in a segment.
func (b *blocks) countMapped(z *objectSizes, o *packed.Object, by int) {
	segment := o.Segment()
	if segment == nil {
		return
	}
	if b.segments == nil {
		b.segments = map[*packed.Segment]int64{}
	}
	bytes := int64(by * o.Len())
	z.mapped += by
	z.mappedBytes += bytes
	if b.segments[segment] += bytes; b.segments[segment] == 0 {
		delete(b.segments, segment)
	}
}

// sparseSegments returns the full segments that have mostly bodies of replaced objects.
func (s *Store) sparseSegments() map[*packed.Segment]bool {
	files := s.segments()
	if files == nil {
		return nil
	}
	s.write.Lock()
	defer s.write.Unlock()
	sparse := map[*packed.Segment]bool{}
	for segment, live := range s.blocks.segments {
		if segment != files.current.Load() && 2*live < segment.Used() {
			sparse[segment] = true
		}
	}
	return sparse
}

// usageOf returns the usage of a block, and adds the block to the sizes if it is new.
func (b *blocks) usageOf(z *objectSizes, block *packed.Block) *blockUsage {
	h := b.usage[block]
	if h == nil {
		if b.usage == nil {
			b.usage, b.sparse = map[*packed.Block]*blockUsage{}, map[*packed.Block]struct{}{}
		}
		h = &blockUsage{replacedBytes: block.Size(), threshold: block.Size() / 2}
		b.usage[block] = h
		z.countBlock(block, 1)
	}
	return h
}

// update removes an unused block and marks a sparse one.
func (b *blocks) update(z *objectSizes, block *packed.Block, h *blockUsage) {
	switch {
	case h.liveObjects == 0:
		delete(b.usage, block)
		delete(b.sparse, block)
		z.countBlock(block, -1)
	case h.replacedBytes > h.threshold:
		b.sparse[block] = struct{}{}
	}
}

func (b *blocks) countAll(z *objectSizes, rows []hashedEntry[*storedRow]) {
	var last *packed.Block
	var h *blockUsage
	for _, r := range rows {
		if r.entry.isIdentity() {
			continue
		}
		o := r.entry.object.Load()
		if o == nil || o.Block() == nil {
			b.count(z, r.entry.item(), 1)
			continue
		}
		if block := o.Block(); block != last { // objects of a block are adjacent
			last, h = block, b.usageOf(z, block)
		}
		h.liveObjects++
		z.compressed++
	}
	z.replaced += int64(len(rows))
	if b.usage != nil {
		b.countReplaced(z, rows)
	}
}

// countReplaced computes the size of the replaced objects of all blocks. rows are the content.
func (b *blocks) countReplaced(z *objectSizes, rows []hashedEntry[*storedRow]) {
	whole := true
	for block, h := range b.usage {
		if h.liveObjects == block.Len() { // the usual case
			h.replacedBytes = 0
		} else {
			whole = false
		}
	}
	if whole {
		return
	}
	for _, r := range rows {
		if o := r.entry.packed(); o != nil && o.Block() != nil &&
			b.usage[o.Block()].liveObjects < o.Block().Len() {
			b.usage[o.Block()].replacedBytes -= o.Size()
		}
	}
	for block, h := range b.usage {
		b.update(z, block, h)
	}
}

// takeSparse returns a sparse block, or nil. The block is sparse again when half of its remaining objects
// have been replaced.
func (b *blocks) takeSparse() *packed.Block {
	for block := range b.sparse {
		delete(b.sparse, block)
		h := b.usage[block]
		h.threshold = h.replacedBytes + (block.Size()-h.replacedBytes)/2
		return block
	}
	return nil
}
