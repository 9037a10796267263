package s2

import (
	"errors"

	"github.com/klauspost/compress/s2"

	"github.com/crdcache/crdcache/internal/packed"
)

// Compressor compresses and decompresses single objects. It is dynamicinformer.Compressor.
type Compressor = interface {
	// Compress appends the compressed form of src to dst, and returns the result.
	Compress(dst, src []byte) []byte
	// Decompress appends the original of src, a result of Compress, to dst, and returns the result. It must
	// not change src. It returns an error if it detects damaged data.
	Decompress(dst, src []byte) ([]byte, error)
}

// Options configure a Trainer. The zero value works.
type Options struct {
	// DictionarySize is the size of dictionaries in bytes, 64 KiB at most. Default: 64 KiB.
	DictionarySize int
}

// Trainer creates compressors for types of objects.
type Trainer struct{ options Options }

// New returns a Trainer.
func New(options Options) *Trainer {
	if options.DictionarySize <= 0 || options.DictionarySize > s2.MaxDictSize {
		options.DictionarySize = s2.MaxDictSize
	}
	options.DictionarySize = max(options.DictionarySize, s2.MinDictSize)
	return &Trainer{options: options}
}

var errNoSamples = errors.New("train a compressor: no samples")

// Train returns a compressor for objects like the samples. It returns an error if there are none.
func (t *Trainer) Train(samples [][]byte) (Compressor, error) {
	text := packed.Dictionary(samples, t.options.DictionarySize)
	if len(text) == 0 {
		return nil, errNoSamples
	}
	return newCompressor(text)
}
