package s2

import (
	"errors"

	"github.com/klauspost/compress/s2"
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
	text := dictionary(samples, t.options.DictionarySize)
	if len(text) == 0 {
		return nil, errNoSamples
	}
	return newCompressor(text)
}

// dictionary returns up to size bytes of samples, spread evenly, as a dictionary for compression. Objects of
// one type repeat the same keys in the same order. For them such a dictionary compresses twice as well as one
// of frequent substrings, and takes a fraction of the time.
func dictionary(samples [][]byte, size int) []byte {
	total := 0
	for _, s := range samples {
		total += len(s)
	}
	stride := max(1, total/size)
	var text []byte
	for n := 0; n < len(samples) && len(text) < size; n += stride {
		text = append(text, samples[n]...)
	}
	return text[:min(len(text), size)]
}
