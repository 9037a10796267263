package readapi

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
)

// blockSize is how much text is compressed at once. Objects of a type have much in common, and one alone too
// little of it; but who reads one decompresses all of its block.
const blockSize = 16 << 10

// block is the text of some objects. As long as there is room it is plain and grows, under the lock of the
// storage; what has been written never changes. When it is full it is compressed, and decompressed for
// whoever reads.
type block struct {
	plain atomic.Pointer[[]byte] // nil once it is compressed
	// seen says that somebody has read plain text, and may be reading still.
	seen  atomic.Bool
	size  int
	small []byte
}

// blocks is the block that is being filled, and memory for the next one. The lock of the storage protects it.
type blocks struct {
	open    *block // nil: none
	plain   []byte // of a block that is full, if nobody can be reading it
	encoded []byte
}

// add keeps a text of less than a block.
func (b *blocks) add(text []byte) packed {
	if b.open != nil && b.open.size+len(text) > blockSize {
		b.close()
	}
	if b.open == nil {
		if b.plain == nil {
			b.plain = make([]byte, blockSize)
		}
		b.open = &block{}
		full := b.plain
		b.open.plain.Store(&full)
		b.plain = nil
	}
	at := b.open.size
	copy((*b.open.plain.Load())[at:], text)
	b.open.size += len(text)
	return packed{b.open, uint32(at), uint32(len(text))}
}

// close compresses the open block.
func (b *blocks) close() {
	plain := *b.open.plain.Load()
	if b.encoded == nil {
		b.encoded = make([]byte, s2.MaxEncodedLen(blockSize))
	}
	b.open.small = bytes.Clone(s2.Encode(b.encoded, plain[:b.open.size]))
	b.open.plain.Store(nil)  // after small is there
	if !b.open.seen.Load() { // whoever comes from now on finds nothing there
		b.plain = plain
	}
	b.open = nil
}

// open is a block that has been decompressed.
type open struct {
	block *block
	text  []byte
}

// opened are the blocks that were read last. Who reads objects in the order in which they came finds the
// block of the one before.
var opened = sync.Pool{New: func() any { return new(open) }}

// appendText appends a part of the text.
func (b *block) appendText(dst []byte, at, length uint32) ([]byte, error) {
	if b.plain.Load() != nil {
		b.seen.Store(true) // before it is looked at again
	}
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
