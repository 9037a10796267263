package store

import "github.com/crdcache/crdcache/internal/packed"

// blocks tracks the blocks that contain objects of the content. A block stays in memory until all its objects
// have been replaced. Changes are guarded by Store.write and update the sizes too. The zero value is empty.
type blocks struct {
	usage  map[*packed.Block]*blockUsage
	sparse map[*packed.Block]struct{}
}

// blockUsage is the part of a block that the content uses.
type blockUsage struct {
	liveObjects   int // objects in the content
	replacedBytes int // size of the replaced objects in bytes
	// threshold is the number of replaced bytes at which the block becomes sparse.
	threshold int
}

// replace updates the sizes for the replacement of old by next. Either can be nil.
func (b *blocks) replace(sizes *objectSizes, old, next *storedRow) {
	if next != nil && !next.isIdentity() { // first, because it may be in the same block
		b.count(sizes, next.item(), 1)
	}
	if old != nil && !old.isIdentity() {
		b.count(sizes, old.item(), -1)
	}
	sizes.replaced++
}

// count adds an item to the sizes (delta = 1) or removes it (delta = -1).
func (b *blocks) count(sizes *objectSizes, item Item, delta int) {
	o, ok := item.(*packed.Object)
	if !ok {
		sizes.decoded += delta
		return
	}
	block := o.Block()
	if block == nil {
		sizes.countPacked(o, delta)
		return
	}
	usage := b.usageOf(sizes, block)
	usage.liveObjects += delta
	usage.replacedBytes -= delta * o.Size()
	sizes.compressed += delta
	b.update(sizes, block, usage)
}

// usageOf returns the usage of a block, and adds the block to the sizes if it is new.
func (b *blocks) usageOf(sizes *objectSizes, block *packed.Block) *blockUsage {
	usage := b.usage[block]
	if usage == nil {
		if b.usage == nil {
			b.usage, b.sparse = map[*packed.Block]*blockUsage{}, map[*packed.Block]struct{}{}
		}
		usage = &blockUsage{replacedBytes: block.Size(), threshold: block.Size() / 2}
		b.usage[block] = usage
		sizes.countBlock(block, 1)
	}
	return usage
}

// update removes an unused block and marks a sparse one.
func (b *blocks) update(sizes *objectSizes, block *packed.Block, usage *blockUsage) {
	switch {
	case usage.liveObjects == 0:
		delete(b.usage, block)
		delete(b.sparse, block)
		sizes.countBlock(block, -1)
	case usage.replacedBytes > usage.threshold:
		b.sparse[block] = struct{}{}
	}
}

func (b *blocks) countAll(sizes *objectSizes, rows []hashedEntry[*storedRow]) {
	var last *packed.Block
	var usage *blockUsage
	for _, r := range rows {
		if r.entry.isIdentity() {
			continue
		}
		o := r.entry.object.Load()
		if o == nil || o.Block() == nil {
			b.count(sizes, r.entry.item(), 1)
			continue
		}
		if block := o.Block(); block != last { // objects of a block are adjacent
			last, usage = block, b.usageOf(sizes, block)
		}
		usage.liveObjects++
		sizes.compressed++
	}
	sizes.replaced += int64(len(rows))
	if b.usage != nil {
		b.countReplaced(sizes, rows)
	}
}

// countReplaced computes the size of the replaced objects of all blocks. rows are the content.
func (b *blocks) countReplaced(sizes *objectSizes, rows []hashedEntry[*storedRow]) {
	allLive := true
	for block, usage := range b.usage {
		if usage.liveObjects == block.Len() { // the usual case
			usage.replacedBytes = 0
		} else {
			allLive = false
		}
	}
	if allLive {
		return
	}
	for _, r := range rows {
		if o := r.entry.packed(); o != nil && o.Block() != nil &&
			b.usage[o.Block()].liveObjects < o.Block().Len() {
			b.usage[o.Block()].replacedBytes -= o.Size()
		}
	}
	for block, usage := range b.usage {
		b.update(sizes, block, usage)
	}
}

// takeSparse returns a sparse block, or nil. The block is sparse again when half of its remaining objects
// have been replaced.
func (b *blocks) takeSparse() *packed.Block {
	for block := range b.sparse {
		delete(b.sparse, block)
		usage := b.usage[block]
		usage.threshold = usage.replacedBytes + (block.Size()-usage.replacedBytes)/2
		return block
	}
	return nil
}
