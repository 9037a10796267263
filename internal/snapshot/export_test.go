package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"

	"github.com/klauspost/compress/zstd"

	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/packed"
)

// SealHeader updates the checksum of a changed header.
func SealHeader(text []byte) {
	sum := crc32.Checksum(text[:block.HeaderSize-4], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(text[block.HeaderSize-4:], sum)
}

// Frame returns the frame of a record after the header.
func Frame(record []byte) []byte {
	return header.AppendFrame(nil, record, int64(block.HeaderSize), nil)
}

// Section returns a section of a record.
func Section(coding byte, size int, stored []byte) []byte {
	section := binary.LittleEndian.AppendUint32([]byte{coding}, uint32(size))
	return append(binary.LittleEndian.AppendUint32(section, uint32(len(stored))), stored...)
}

// RecordOf returns a record of an object for each name.
func RecordOf(names ...string) []byte {
	var w packed.BlockWriter
	for _, name := range names {
		o, err := pack(fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name), "example.com/v1", "Gizmo")
		if err != nil {
			panic(err)
		}
		if added, err := w.Add(o); !added || err != nil {
			panic(err)
		}
	}
	index, bodies := w.AppendBlock(nil)
	record, err := block.AppendObjects(nil, block.Parts{Head: index, Bodies: bodies}, true, nil)
	if err != nil {
		panic(err)
	}
	return record
}

// Bomb returns a record with a section of size zeros, compressed.
func Bomb(size int) []byte {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return append([]byte("O"), Section(1, size, encoder.EncodeAll(make([]byte, size), nil))...)
}

// Assemble returns a file with a frame and an index.
func Assemble(frame, index []byte) []byte {
	text := append(header.Append(nil), frame...)
	at := len(text)
	record, err := block.AppendText(nil, block.Index, index, &block.Compressor{})
	if err != nil {
		panic(err)
	}
	text = header.AppendFrame(text, record, int64(at), nil)
	return block.AppendTrailer(text, int64(at))
}

// CompressedIndex returns a file with a compressed index. Random data in it keeps the compression ratio below
// the limit.
func CompressedIndex(index []byte) []byte {
	noise := make([]byte, len(index)/200)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // never returns an error
	return Assemble(nil, fmt.Appendf(index[:len(index)-1], `,"noise":"%x"}`, noise))
}
