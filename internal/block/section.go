package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// coding is the form of the content of a section.
type coding byte

const (
	plain coding = iota
	zstdCoding
	s2Coding
)

// A section is a part of a record: its coding, its size before and after compression, and its content.
const sectionHeader = 1 + 4 + 4

// Limits of sections. With a larger ratio a small file could need much memory: the writer compresses less.
const (
	// MaxContent is the maximum size of a section before compression, in bytes.
	MaxContent = 64 << 20
	// maxHeadRatio is the maximum compression ratio of heads, whose decoded objects need several times their
	// size. maxRatio is that of other sections.
	maxHeadRatio = 60
	maxRatio     = 200
)

// ErrDamaged is the error for damaged content.
var ErrDamaged = errors.New("the content is damaged")

// Compressor compresses records. It is not safe for concurrent use, and has buffers of more than a megabyte
// from its first use. Nil compresses less. It must not be a global variable: the channels of an encoder
// belong to the bubble of a synctest that creates them.
type Compressor struct{ encoder *zstd.Encoder }

func (c *Compressor) encode(dst, content []byte) []byte {
	if c.encoder == nil {
		var err error
		// Data without repetitions may still be hexadecimal or base64, so all literals are compressed.
		c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true),
			zstd.WithAllLitEntropyCompression(true))
		if err != nil {
			panic(err) // the options are constant
		}
	}
	return c.encoder.EncodeAll(content, dst)
}

// decoder is made at the start, in no bubble, and has no buffers before it is used.
var decoder = func() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(4), zstd.WithDecoderMaxMemory(MaxContent),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecodeAllCapLimit(true)) // without it, the decoder trusts the length in a frame
	if err != nil {
		panic(err) // the options are constant
	}
	return decoder
}()

// appendSection appends a section in the first coding that makes it smaller within the ratio, or plain.
func appendSection(dst, content []byte, ratio int, c *Compressor, codings ...coding) ([]byte, error) {
	if len(content) > MaxContent {
		return dst, fmt.Errorf("the objects are too large: the limit is %d bytes", MaxContent)
	}
	start := len(dst) + sectionHeader
	for _, coding := range append(codings, plain) {
		if coding == zstdCoding && c == nil {
			continue
		}
		dst = append(dst[:start-sectionHeader], byte(coding))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(content)))
		dst = append(dst, 0, 0, 0, 0)
		switch coding {
		case zstdCoding:
			dst = c.encode(dst, content)
		case s2Coding:
			dst = append(dst, s2.EncodeBetter(nil, content)...)
		default:
			dst = append(dst, content...)
		}
		size := len(dst) - start
		if coding == plain || size < len(content) && len(content) <= ratio*size {
			binary.LittleEndian.PutUint32(dst[start-4:], uint32(size))
			break
		}
	}
	return dst, nil
}

// section is a section that was not decompressed yet.
type section struct {
	coding coding
	size   int
	stored []byte
}

// cutSection cuts the first section off a record.
func cutSection(record []byte, ratio int) (s section, rest []byte, err error) {
	if len(record) < sectionHeader {
		return s, nil, ErrDamaged
	}
	size, stored := binary.LittleEndian.Uint32(record[1:]), binary.LittleEndian.Uint32(record[5:])
	rest = record[sectionHeader:]
	if uint64(stored) > uint64(len(rest)) {
		return s, nil, fmt.Errorf("%w: a section has %d bytes of %d", ErrDamaged, len(rest), stored)
	}
	if size > MaxContent || uint64(size) > uint64(stored)*uint64(ratio) {
		return s, nil, fmt.Errorf("%w: a section of %d bytes, compressed to %d", ErrDamaged, size, stored)
	}
	return section{coding(record[0]), int(size), rest[:stored:stored]}, rest[stored:], nil
}

// openOnly returns the content of the only section of a record.
func openOnly(record []byte) ([]byte, error) {
	s, rest, err := cutSection(record, maxRatio)
	if err == nil && len(rest) > 0 {
		err = ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	return s.open(nil)
}

// open returns the content of the section, which may share the memory of the record or of the buffer.
func (s section) open(buffer []byte) (content []byte, err error) {
	switch s.coding {
	case plain:
		content = s.stored
	case zstdCoding:
		content, err = decoder.DecodeAll(s.stored, slices.Grow(buffer[:0], s.size))
	case s2Coding:
		if n, sizeErr := s2.DecodedLen(s.stored); sizeErr != nil || n != s.size {
			return nil, ErrDamaged
		}
		content, err = s2.Decode(slices.Grow(buffer[:0], s.size)[:s.size], s.stored)
	default:
		return nil, fmt.Errorf("%w: unknown coding %d", ErrDamaged, s.coding)
	}
	if err != nil || len(content) != s.size {
		return nil, fmt.Errorf("%w: %d bytes of %d, %w", ErrDamaged, len(content), s.size, err)
	}
	return content, nil
}
