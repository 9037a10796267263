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

// Trainer creates compressors for types of objects, with dictionaries of 64 KiB.
type Trainer struct{}

// New returns a Trainer. All Trainers are equal.
func New() Trainer { return Trainer{} }

var errNoSamples = errors.New("train a compressor: no samples")

// Train returns a compressor for objects like the samples. It returns an error if there are none.
//
// Its dictionary consists of samples, spread evenly. Objects of one type repeat the same keys in the same
// order. For them such a dictionary compresses twice as well as one of frequent substrings, and takes a
// fraction of the time.
func (Trainer) Train(samples [][]byte) (Compressor, error) {
	total := 0
	for _, s := range samples {
		total += len(s)
	}
	stride := max(1, total/s2.MaxDictSize)
	var text []byte
	for n := 0; n < len(samples) && len(text) < s2.MaxDictSize; n += stride {
		text = append(text, samples[n]...)
	}
	if len(text) == 0 {
		return nil, errNoSamples
	}
	text = text[:min(len(text), s2.MaxDictSize)]
	for len(text) < s2.MinDictSize {
		text = append(text, ' ')
	}
	// s2 first compares an object with the dictionary at this offset, which precedes the text.
	const repeatOffset = 0
	dictionary := s2.NewDict(append([]byte{repeatOffset}, text...))
	if dictionary == nil {
		return nil, errNoDictionary
	}
	return &compressor{dictionary}, nil
}
