package disk

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// A record is a value of the engine: compressed here rather than by pebble, so that blocks can stay
// compressed in memory, and what is encrypted is compressed before.

// maxRecord is what a record may come to when it is decompressed: far more than any is written with.
const maxRecord = 1 << 30

// decoder is for everybody, and for blocks also after their Store has been closed.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxRecord),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err) // the options are wrong
	}
	return d
})

// window is how far compression looks back: as far as most blocks are long.
const window = 128 << 10

// encoder is shared as decoder is.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true),
		zstd.WithAllLitEntropyCompression(true)) // what repeats nothing may still be hexadecimal, or base64
	if err != nil {
		panic(err) // the options are wrong
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

// appendBlock appends the record of a block. Heads are read at each start, so that they are compressed by
// what is fast to read.
func appendBlock(to, head, bodies []byte) []byte {
	small := s2.EncodeBest(nil, head)
	to = append(binary.AppendUvarint(to, uint64(len(small))), small...)
	return append(to, compress(bodies)...)
}

// readBlock reads the record of a block. The head takes the place of what is in memory, if there is room for
// it; the bodies have memory of their own, and are still compressed.
func readBlock(memory, record []byte) (head, bodies []byte, err error) {
	length, n := binary.Uvarint(record)
	if n <= 0 || length > uint64(len(record)-n) {
		return nil, nil, errDamaged
	}
	small := record[n : n+int(length)]
	if size, err := s2.DecodedLen(small); err != nil || size > maxRecord {
		return nil, nil, errDamaged
	}
	if head, err = s2.Decode(memory[:cap(memory)], small); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return head, append([]byte(nil), record[n+int(length):]...), nil
}

// appendChange appends a change to the text of a log record: json is nil for what is deleted.
func appendChange(to []byte, key string, json []byte) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(key))), key...)
	if json == nil {
		return binary.AppendUvarint(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(json))+1), json...)
}

// readChanges calls changed for each change of a log record.
func readChanges(record []byte, changed func(key string, json []byte) error) error {
	text, err := decompress(record)
	if err != nil {
		return err
	}
	take := func(less uint64) (part []byte, ok bool) {
		length, n := binary.Uvarint(text)
		if n <= 0 {
			return nil, false
		}
		text = text[n:]
		if length < less {
			return nil, true
		}
		if length -= less; length > uint64(len(text)) {
			return nil, false
		}
		part, text = text[:length:length], text[length:]
		return part, true
	}
	for len(text) > 0 {
		key, ok := take(0)
		json, also := take(1)
		if !ok || !also {
			return errDamaged
		}
		if err := changed(string(key), json); err != nil {
			return err
		}
	}
	return nil
}
