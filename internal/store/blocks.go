package store

import "github.com/crdcache/crdcache/internal/packed"

// blocks are those that the content has objects of: each is in memory as a whole, however many of its objects
// have been replaced. They are changed under Store.write, together with the sizes. The zero value has none.
type blocks struct {
	held map[*packed.Block]*heldBlock
	// sparse are those whose objects Relieve should give memory of their own.
	sparse map[*packed.Block]struct{}
}

// heldBlock is what the content has of a block.
type heldBlock struct {
	living int // objects
	gone   int // bytes of the others
	// enough is how many bytes have to be gone for the block to be sparse.
	enough int
}

// replace has the sizes, and the blocks, be those of a content in which next takes the place of old; either
// may be nil.
func (b *blocks) replace(z *sizes, old, next *row) {
	if next != nil { // which may be in the same block
		b.count(z, next.keptItem(), 1)
	}
	if old != nil {
		b.count(z, old.keptItem(), -1)
	}
	z.replaced++
}

// count adds an item to the sizes, or takes it out.
func (b *blocks) count(z *sizes, item Item, by int) {
	o, ok := item.(*packed.Object)
	if !ok {
		z.decoded += by
		return
	}
	block := o.Block()
	if block == nil {
		z.countPacked(o, by)
		return
	}
	h := b.hold(z, block)
	h.living += by
	h.gone -= by * o.Size()
	z.compressed += by
	b.judge(z, block, h)
}

// hold returns what the content has of a block, which counts from now on.
func (b *blocks) hold(z *sizes, block *packed.Block) *heldBlock {
	h := b.held[block]
	if h == nil {
		if b.held == nil {
			b.held, b.sparse = map[*packed.Block]*heldBlock{}, map[*packed.Block]struct{}{}
		}
		h = &heldBlock{gone: block.Held(), enough: block.Held() / 2}
		b.held[block] = h
		z.countBlock(block, 1)
	}
	return h
}

// judge notes what has become of a block.
func (b *blocks) judge(z *sizes, block *packed.Block, h *heldBlock) {
	switch {
	case h.living == 0:
		delete(b.held, block)
		delete(b.sparse, block)
		z.countBlock(block, -1)
	case h.gone > h.enough:
		b.sparse[block] = struct{}{}
	}
}

// countAll counts all rows of a content.
func (b *blocks) countAll(z *sizes, rows []hashed[*row]) {
	var last *packed.Block
	var h *heldBlock
	for _, r := range rows {
		o := r.entry.object.Load()
		if o == nil || o.Block() == nil {
			b.count(z, r.entry.keptItem(), 1)
			continue
		}
		if block := o.Block(); block != last { // objects of a block come together
			last, h = block, b.hold(z, block)
		}
		h.living++
		z.compressed++
	}
	z.replaced += int64(len(rows))
	if b.held != nil {
		b.countGone(z, rows)
	}
}

// countGone counts, of each block, the objects that the content does not have: those of rows are living.
func (b *blocks) countGone(z *sizes, rows []hashed[*row]) {
	whole := true
	for block, h := range b.held {
		if h.living == block.Len() { // as of most
			h.gone = 0
		} else {
			whole = false
		}
	}
	if whole {
		return
	}
	for _, r := range rows {
		if o := r.entry.object.Load(); o != nil && o.Block() != nil &&
			b.held[o.Block()].living < o.Block().Len() {
			b.held[o.Block()].gone -= o.Size()
		}
	}
	for block, h := range b.held {
		b.judge(z, block, h)
	}
}

// takeSparse returns a block that is sparse; nil: none is. It is sparse again when half of what is left of it
// has gone, too.
func (b *blocks) takeSparse() *packed.Block {
	for block := range b.sparse {
		delete(b.sparse, block)
		h := b.held[block]
		h.enough = h.gone + (block.Held()-h.gone)/2
		return block
	}
	return nil
}
