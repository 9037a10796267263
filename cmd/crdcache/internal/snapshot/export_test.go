package snapshot

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
)

// SealHeader updates the checksum of a changed header.
func SealHeader(text []byte) {
	binary.LittleEndian.PutUint32(text[headerSize-4:], crc32.Checksum(text[:headerSize-4], castagnoli))
}

// Frame returns a frame with uncompressed content.
func Frame(kind byte, content []byte) []byte {
	size := uint32(len(content))
	return appendFrame(nil, contentFrame{kind: kind, coding: codingPlain, rawSize: size, storedSize: size},
		content)
}

// Bomb returns a frame of size zeros, compressed.
func Bomb(size int) []byte {
	encoder := encoders.Get().(interface{ EncodeAll(src, dst []byte) []byte })
	defer encoders.Put(encoder)
	small := encoder.EncodeAll(make([]byte, size), nil)
	return appendFrame(nil, contentFrame{kind: kindObjects, coding: codingZstd, rawSize: uint32(size),
		storedSize: uint32(len(small))}, small)
}

// Assemble returns a file with a frame and an index.
func Assemble(frame, index []byte) []byte {
	text := append(formatHeader(), frame...)
	at := len(text)
	last := appendContent(nil, kindIndex, index)
	return append(append(text, last...), formatTrailer(int64(at), len(last))...)
}

// CompressedIndex returns a file with a compressed index. Random data in it keeps the compression ratio below
// the limit.
func CompressedIndex(index []byte) []byte {
	noise := make([]byte, len(index)/200)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never returns an error
	index = fmt.Appendf(index[:len(index)-1], `,"noise":"%x"}`, noise)
	encoder := encoders.Get().(interface{ EncodeAll(src, dst []byte) []byte })
	defer encoders.Put(encoder)
	small := encoder.EncodeAll(index, nil)
	last := appendFrame(nil, contentFrame{kind: kindIndex, coding: codingZstd, rawSize: uint32(len(index)),
		storedSize: uint32(len(small))}, small)
	text := formatHeader()
	return append(append(text, last...), formatTrailer(int64(len(text)), len(last))...)
}

// Raw returns texts as cells.
func Raw(texts ...string) []json.RawMessage {
	cells := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		cells[i] = json.RawMessage(text)
	}
	return cells
}
