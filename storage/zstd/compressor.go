package zstd

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var errDamaged = errors.New("the compressed data is damaged")

// dictionaryData is a dictionary. If isRaw is set, content is only text that may recur; otherwise it also
// has statistics.
type dictionaryData struct {
	id      uint32
	content []byte
	isRaw   bool
}

// compressor is a Compressor with one dictionary. Encoders and decoders prepare their dictionary once. They
// are pooled, so that the garbage collector can free unused ones.
type compressor struct {
	dictionary dictionaryData
	level      zstd.EncoderLevel
	encoders   sync.Pool
	decoders   sync.Pool
}

func newCompressor(level zstd.EncoderLevel, d dictionaryData) (*compressor, error) {
	c := &compressor{dictionary: d, level: level}
	encoder, err := c.newEncoder()
	if err != nil {
		return nil, err
	}
	c.encoders.Put(encoder)
	decoder, err := c.newDecoder()
	if err != nil {
		return nil, err
	}
	c.decoders.Put(decoder)
	return c, nil
}

func (c *compressor) Compress(dst, src []byte) []byte {
	encoder, _ := c.encoders.Get().(*zstd.Encoder)
	if encoder == nil {
		var err error
		if encoder, err = c.newEncoder(); err != nil {
			panic(err) // the same options have worked before
		}
	}
	defer c.encoders.Put(encoder)
	return encoder.EncodeAll(src, dst)
}

func (c *compressor) Decompress(dst, src []byte) ([]byte, error) {
	decoder, _ := c.decoders.Get().(*zstd.Decoder)
	if decoder == nil {
		var err error
		if decoder, err = c.newDecoder(); err != nil {
			return dst, err
		}
	}
	defer c.decoders.Put(decoder)
	dst, err := decoder.DecodeAll(src, dst)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return dst, nil
}

// windowSize is the window size of encoders in bytes. Larger objects are rare.
const windowSize = 64 << 10

func (c *compressor) newEncoder() (*zstd.Encoder, error) {
	options := []zstd.EOption{
		zstd.WithEncoderLevel(c.level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(windowSize), zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true),
	}
	if d := c.dictionary; d.isRaw {
		options = append(options, zstd.WithEncoderDictRaw(d.id, d.content))
	} else {
		options = append(options, zstd.WithEncoderDict(d.content))
	}
	encoder, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return nil, fmt.Errorf("create an encoder: %w", err)
	}
	return encoder, nil
}

// maxObject limits the decompressed size, so that damaged data cannot cause large allocations.
// crdcache compresses only smaller objects.
const maxObject = 128 << 20

func (c *compressor) newDecoder() (*zstd.Decoder, error) {
	options := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxObject)}
	if d := c.dictionary; d.isRaw {
		options = append(options, zstd.WithDecoderDictRaw(d.id, d.content))
	} else {
		options = append(options, zstd.WithDecoderDicts(d.content))
	}
	decoder, err := zstd.NewReader(nil, options...)
	if err != nil {
		return nil, fmt.Errorf("create a decoder: %w", err)
	}
	return decoder, nil
}
