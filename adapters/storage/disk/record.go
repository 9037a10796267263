package disk

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A record is a value of the engine. It is compressed here, not by pebble, so that blocks stay compressed
// in memory, and data is compressed before encryption.

// maxRecord limits decompressed records. Written records are much smaller.
const maxRecord = 1 << 30

// decoder is shared by all Stores. Blocks use it even after Close.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRecord),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return d
})

// zstdWindow is the window size of the compression: the length of most blocks.
const zstdWindow = 128 << 10

// encoder is shared like decoder.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(zstdWindow),
		zstd.WithLowerEncoderMem(true),
		// data without repetitions may still be hexadecimal or base64
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return e
})

func compress(text []byte) []byte { return encoder().EncodeAll(text, nil) }

func decompress(data []byte) ([]byte, error) {
	text, err := decoder().DecodeAll(data, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return text, nil
}

// appendBlock appends a block's record. Heads are read at each start, so they use a fast compression.
func appendBlock(to, head, bodies []byte) []byte {
	compressedHead := s2.EncodeBest(nil, head)
	to = append(binary.AppendUvarint(to, uint64(len(compressedHead))), compressedHead...)
	return append(to, compress(bodies)...)
}

// readBlock parses a block's record. The head uses headBuffer if that is large enough. bodies is a copy,
// still compressed.
func readBlock(headBuffer, record []byte) (head, bodies []byte, err error) {
	length, n := binary.Uvarint(record)
	if n <= 0 || length > uint64(len(record)-n) {
		return nil, nil, errDamaged
	}
	compressedHead := record[n : n+int(length)]
	if size, err := s2.DecodedLen(compressedHead); err != nil || size > maxRecord {
		return nil, nil, errDamaged
	}
	if head, err = s2.Decode(headBuffer[:cap(headBuffer)], compressedHead); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return head, append([]byte(nil), record[n+int(length):]...), nil
}

// appendChange appends a change to the text of a log record; a nil json is a deletion.
func appendChange(to []byte, key string, json []byte) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(key))), key...)
	if json == nil {
		return binary.AppendUvarint(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(json))+1), json...)
}

func readChanges(record []byte, changed func(key string, json []byte) error) error {
	text, err := decompress(record)
	if err != nil {
		return err
	}
	readBytes := func(bias uint64) (part []byte, ok bool) {
		length, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, false
		}
		text = text[n:]
		if length < bias {
			return nil, true
		}
		if length -= bias; length > uint64(len(text)) {
			return nil, false
		}
		part, text = text[:length:length], text[length:]
		return part, true
	}
	for len(text) > 0 {
		key, keyOK := readBytes(0)
		json, jsonOK := readBytes(1)
		if !keyOK || !jsonOK {
			return errDamaged
		}
		if err := changed(string(key), json); err != nil {
			return err
		}
	}
	return nil
}
