package apiserver

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/s2"
)

// blockSize is the amount of text that is compressed together. A single object has too little redundancy to
// compress well, but each read decompresses a whole block.
const blockSize = 16 << 10

// block holds the text of several objects. An open block is uncompressed. It grows under the lock of the
// storage, and written text does not change. A full block is compressed, and reads decompress it.
type block struct {
	uncompressed atomic.Pointer[[]byte] // the uncompressed text; nil once the block is full
	hasReaders   atomic.Bool            // a reader can still be using uncompressed
	size         int
	compressed   []byte
}

type blockText struct {
	block          *block
	offset, length uint32
}

// blockWriter fills blocks. The lock of the storage protects it.
type blockWriter struct {
	block          *block // nil if none is open
	reusableBuffer []byte // memory for the next block; nil if a reader can be using it
	compressBuffer []byte
}

// add copies a text that is smaller than a block.
func (w *blockWriter) add(text []byte) blockText {
	if w.block != nil && w.block.size+len(text) > blockSize {
		w.finish()
	}
	if w.block == nil {
		if w.reusableBuffer == nil {
			w.reusableBuffer = make([]byte, blockSize)
		}
		memory := w.reusableBuffer
		w.block, w.reusableBuffer = &block{}, nil
		w.block.uncompressed.Store(&memory)
	}
	offset := w.block.size
	copy((*w.block.uncompressed.Load())[offset:], text)
	w.block.size += len(text)
	return blockText{w.block, uint32(offset), uint32(len(text))}
}

func (w *blockWriter) finish() {
	text := *w.block.uncompressed.Load()
	if w.compressBuffer == nil {
		w.compressBuffer = make([]byte, s2.MaxEncodedLen(blockSize))
	}
	w.block.compressed = bytes.Clone(s2.Encode(w.compressBuffer, text[:w.block.size]))
	w.block.uncompressed.Store(nil) // after compressed is set
	if !w.block.hasReaders.Load() {
		w.reusableBuffer = text
	}
	w.block = nil
}

type decompressedBlock struct {
	block *block
	text  []byte
}

// decompressedBlocks caches recently read blocks, for readers that read objects in the order of the blocks.
var decompressedBlocks = sync.Pool{New: func() any { return new(decompressedBlock) }}

func (b *block) appendText(dst []byte, offset, length uint32) ([]byte, error) {
	if b.uncompressed.Load() != nil {
		b.hasReaders.Store(true) // before uncompressed is loaded again
	}
	if text := b.uncompressed.Load(); text != nil {
		return append(dst, (*text)[offset:offset+length]...), nil
	}
	d := decompressedBlocks.Get().(*decompressedBlock)
	defer decompressedBlocks.Put(d)
	if d.block != b {
		d.block = nil
		var err error
		if d.text, err = s2.Decode(d.text[:cap(d.text)], b.compressed); err != nil {
			return dst, fmt.Errorf("decompress objects: %w", err)
		}
		d.block = b
	}
	return append(dst, d.text[offset:offset+length]...), nil
}
