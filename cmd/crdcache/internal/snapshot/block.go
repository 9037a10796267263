package snapshot

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// blockSize is the size of a block before compression. Larger blocks would hardly compress better, and
// reading one object decompresses a block.
const blockSize = 256 << 10

// maxBlockObjects limits the objects of a block, so that a small file cannot cause large allocations.
const maxBlockObjects = 8 << 10

// minObjectSize is the minimum size of an object in a block: three lengths, a key, and JSON with a name.
const minObjectSize = 3 + len("a") + len(`{"metadata":{"name":"a"}}`)

// blockSizeTolerance is added to the size of a block in the check of its number of objects: a small block
// can have a few smaller objects.
const blockSizeTolerance = 256

type blockBuilder struct {
	lengths []byte
	keys    []byte
	bodies  []byte
	objects int

	first, last string
}

func (b *blockBuilder) addRecord(key string, r Record) {
	if b.objects == 0 {
		b.first = key
	}
	b.last = key
	b.objects++
	b.lengths = binary.AppendUvarint(b.lengths, uint64(len(key)))
	b.lengths = binary.AppendUvarint(b.lengths, uint64(len(r.JSON)))
	b.lengths = binary.AppendUvarint(b.lengths, uint64(len(r.Cells)))
	b.keys = append(b.keys, key...)
	b.bodies = append(append(b.bodies, r.JSON...), r.Cells...)
}

func (b *blockBuilder) size() int { return len(b.lengths) + len(b.keys) + len(b.bodies) }

func (b *blockBuilder) appendTo(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.objects))
	return append(append(append(dst, b.lengths...), b.keys...), b.bodies...)
}

func (b *blockBuilder) reset() {
	b.lengths, b.keys, b.bodies = b.lengths[:0], b.keys[:0], b.bodies[:0]
	b.objects = 0
}

// parseBlock returns the records of a block, which alias its content. Content, keys and records together
// use at most maxParsedMemoryPerByte times the size of the content.
func parseBlock(content []byte) ([]Record, error) {
	count, offset := binary.Uvarint(content)
	if offset <= 0 || count > maxBlockObjects ||
		count*uint64(minObjectSize) > uint64(len(content)+blockSizeTolerance) {
		return nil, fmt.Errorf("invalid block: %d objects in %d bytes", count, len(content))
	}
	var totalLength uint64
	lengthOffset := offset
	for range 3 * count {
		n, length := binary.Uvarint(content[offset:])
		if length <= 0 || n > uint64(len(content)) {
			return nil, fmt.Errorf("invalid lengths in a block")
		}
		offset += length
		totalLength += n
	}
	if totalLength != uint64(len(content)-offset) {
		return nil, fmt.Errorf("invalid block: the objects have %d bytes, the block has %d", totalLength,
			len(content)-offset)
	}
	nextLength := func() int {
		n, used := binary.Uvarint(content[lengthOffset:])
		lengthOffset += used
		return int(n)
	}
	keysLength, lengthsStart := 0, lengthOffset
	for range count {
		keysLength += nextLength()
		nextLength()
		nextLength()
	}
	lengthOffset = lengthsStart
	keyBytes := string(content[offset : offset+keysLength]) // one allocation for all keys
	rest := content[offset+keysLength:]
	takeBytes := func(n int) []byte {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	records := make([]Record, count)
	for i := range records {
		keyLength := nextLength()
		records[i].Key, keyBytes = keyBytes[:keyLength], keyBytes[keyLength:]
		records[i].JSON = takeBytes(nextLength())
		if cellsLength := nextLength(); cellsLength > 0 {
			records[i].Cells = takeBytes(cellsLength)
		}
	}
	return records, nil
}

// The encoders and the decoder are reused, because each has buffers as large as several blocks.
var (
	encoders = sync.Pool{New: func() any {
		encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(1<<20))
		if err != nil {
			panic(err) // the options are constant
		}
		return encoder
	}}
	decoder = sync.OnceValue(func() *zstd.Decoder {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0),
			zstd.WithDecoderMaxMemory(maxContentSize))
		if err != nil {
			panic(err) // the options are constant
		}
		return decoder
	})
)

// appendContent appends a frame with content, compressed if that makes it smaller.
func appendContent(dst []byte, kind byte, content []byte) []byte {
	encoder := encoders.Get().(*zstd.Encoder)
	defer encoders.Put(encoder)
	compressed := encoder.EncodeAll(content, nil)
	f := contentFrame{kind: kind, coding: codingZstd, rawSize: uint32(len(content)),
		storedSize: uint32(len(compressed))}
	if len(compressed) >= len(content) ||
		maxParsedSize(kind, content) > maxAllowedSize(kind, len(compressed)) {
		f.coding, f.storedSize, compressed = codingPlain, f.rawSize, content
	}
	return appendFrame(dst, f, compressed)
}

func maxParsedSize(kind byte, content []byte) uint64 {
	cost := uint64(len(content)) * maxParsedMemoryPerByte
	if kind == kindIndex {
		cost += indexMemory(content)
	}
	return cost
}

// maxAllowedSize returns the limit of maxParsedSize for content of storedSize bytes in the file.
func maxAllowedSize(kind byte, storedSize int) uint64 {
	allowed := uint64(storedSize) * maxMemoryPerByte
	if kind == kindIndex {
		allowed += indexBase
	}
	return allowed
}

// decodeFrame returns the uncompressed content of a frame. It may alias text.
func decodeFrame(frameBytes []byte, kind byte, offset int64) ([]byte, error) {
	f, content, err := parseFrame(frameBytes, offset)
	switch {
	case err != nil:
		return nil, err
	case f.kind != kind:
		return nil, damagedError(offset, "a block has kind %q, want %q", f.kind, kind)
	case f.coding == codingPlain && f.rawSize == f.storedSize:
		return content, nil
	case f.coding != codingZstd:
		return nil, damagedError(offset, "a block has the unknown coding %d", f.coding)
	}
	decompressed, err := decoder().DecodeAll(content, make([]byte, 0, f.rawSize))
	if err == nil && len(decompressed) != int(f.rawSize) {
		err = fmt.Errorf("got %d bytes, want %d", len(decompressed), f.rawSize)
	}
	if err != nil {
		return nil, damagedError(offset, "decompress a block: %v", err)
	}
	return decompressed, nil
}
