package readapi

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
)

// blockSize is how much text is compressed at once. Objects of a type have much in common, and one alone too little of it;
// but who reads one decompresses all of its block.
const blockSize = 16 << 10

// block is the text of some objects. As long as there is room it is plain and grows, under the lock of the storage; what
// has been written never changes. When it is full it is compressed, and decompressed for whoever reads.
type block struct {
	plain atomic.Pointer[[]byte] // nil once it is compressed
	size  int
	small []byte
}

func newBlock() *block {
	b := &block{}
	text := make([]byte, blockSize)
	b.plain.Store(&text)
	return b
}

// add appends text, and returns where it is; ok is false when there is no room.
func (b *block) add(text []byte) (at int, ok bool) {
	at = b.size
	if at+len(text) > blockSize {
		return 0, false
	}
	copy((*b.plain.Load())[at:], text)
	b.size += len(text)
	return at, true
}

// close compresses the block, to which nothing can be added any more.
func (b *block) close() {
	b.small = append([]byte(nil), s2.Encode(nil, (*b.plain.Load())[:b.size])...)
	b.plain.Store(nil) // after small is there
}

// open is a block that has been decompressed.
type open struct {
	block *block
	text  []byte
}

// opened are the blocks that were read last. Who reads objects in the order in which they came finds the block of the one
// before.
var opened = sync.Pool{New: func() any { return new(open) }}

// appendText appends a part of the text.
func (b *block) appendText(dst []byte, at, length uint32) ([]byte, error) {
	if plain := b.plain.Load(); plain != nil {
		return append(dst, (*plain)[at:at+length]...), nil
	}
	o := opened.Get().(*open)
	defer opened.Put(o)
	if o.block != b {
		o.block = nil
		var err error
		if o.text, err = s2.Decode(o.text[:cap(o.text)], b.small); err != nil {
			return dst, fmt.Errorf("decompressing objects: %w", err)
		}
		o.block = b
	}
	return append(dst, o.text[at:at+length]...), nil
}
