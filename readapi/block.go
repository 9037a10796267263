package readapi

import (
	"fmt"
	"sync/atomic"
	"weak"

	"github.com/klauspost/compress/s2"
)

// blockSize is how much text is compressed at once: objects of a type have much in common, and one alone too little of it.
const blockSize = 64 << 10

// block is the text of some objects. As long as there is room it is plain and grows, under the lock of the storage; what
// has been written never changes. When it is full it is compressed, and decompressed for whoever reads.
type block struct {
	plain   atomic.Pointer[[]byte] // nil once it is compressed
	size    int
	small   []byte
	decoded atomic.Pointer[weak.Pointer[[]byte]]
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

// text returns all text. Who reads one object after the other gets the same each time, as long as the garbage collector
// lets it be.
func (b *block) text() ([]byte, error) {
	if plain := b.plain.Load(); plain != nil {
		return *plain, nil
	}
	if last := b.decoded.Load(); last != nil {
		if text := last.Value(); text != nil {
			return *text, nil
		}
	}
	text, err := s2.Decode(nil, b.small)
	if err != nil {
		return nil, fmt.Errorf("decompressing objects: %w", err)
	}
	kept := weak.Make(&text)
	b.decoded.Store(&kept)
	return text, nil
}
