package s2

import (
	"errors"

	"github.com/klauspost/compress/s2"

	"github.com/crdcache/crdcache/storage/internal/dictionary"
)

// Compressor compresses and decompresses one object at a time. It is the Compressor of package
// dynamicinformer.
type Compressor = interface {
	// Compress appends the compressed form of src to dst, and returns the result.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress made src of to dst, and returns the result. It must not change src.
	// The error is for data that is damaged, as far as that shows.
	Decompress(dst, src []byte) ([]byte, error)
}

// Options configure a Trainer. The zero value works.
type Options struct {
	// DictionarySize is the size of dictionaries in bytes, 64 KiB at most. Default: 64 KiB.
	DictionarySize int
}

// Trainer makes compressors for types of objects.
type Trainer struct{ options Options }

// New returns a Trainer.
func New(options Options) *Trainer {
	if options.DictionarySize <= 0 || options.DictionarySize > s2.MaxDictSize {
		options.DictionarySize = s2.MaxDictSize
	}
	options.DictionarySize = max(options.DictionarySize, s2.MinDictSize)
	return &Trainer{options: options}
}

var errNoSamples = errors.New("learning a dictionary: there are no samples")

// Train returns a compressor for objects like the samples. It fails without samples.
func (t *Trainer) Train(samples [][]byte) (Compressor, error) {
	text := dictionary.Of(samples, t.options.DictionarySize)
	if len(text) == 0 {
		return nil, errNoSamples
	}
	return newCompressor(text)
}
