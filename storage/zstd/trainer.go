package zstd

import (
	"errors"
	"math/rand/v2"

	"github.com/klauspost/compress/zstd"

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

// Level is the effort of compression. It does not affect decompression.
type Level int

const (
	// LevelFast takes the least time. It is the default.
	LevelFast Level = iota
	// LevelBetter takes several times as long for a few percent less memory.
	LevelBetter
)

// Options configure a Trainer. The zero value works.
type Options struct {
	// DictionarySize is the size of dictionaries in bytes, approximately. Default: 32 KiB.
	DictionarySize int
	// Level is the effort of compression. Default: LevelFast.
	Level Level
}

const defaultDictionary = 32 << 10

// Trainer creates compressors for types of objects.
type Trainer struct{ options Options }

// New returns a Trainer.
func New(options Options) *Trainer {
	if options.DictionarySize <= 0 {
		options.DictionarySize = defaultDictionary
	}
	return &Trainer{options: options}
}

var errNoSamples = errors.New("train a compressor: no samples")

// Train returns a compressor for objects like the samples. It returns an error if there are none.
func (t *Trainer) Train(samples [][]byte) (Compressor, error) {
	history := packed.Dictionary(samples, t.options.DictionarySize)
	if len(history) == 0 {
		return nil, errNoSamples
	}
	id := 1<<15 + rand.Uint32N(1<<30) // smaller ids are reserved
	if dictionary := t.buildDictionary(id, samples, history); dictionary != nil {
		c, err := newCompressor(t.encoderLevel(), dictionaryData{id: id, content: dictionary})
		if err == nil {
			return c, nil
		}
	}
	return newCompressor(t.encoderLevel(), dictionaryData{id: id, content: history, isRaw: true})
}

// maxSample limits the part of a sample that is used for statistics.
const maxSample = 32 << 10

// buildDictionary returns a dictionary of the history with statistics of the samples. It returns nil if the
// samples are too few or unsuitable; the library panics for some.
func (t *Trainer) buildDictionary(id uint32, samples [][]byte, history []byte) (dictionary []byte) {
	defer func() {
		if recover() != nil {
			dictionary = nil
		}
	}()
	contents := make([][]byte, len(samples))
	for i, s := range samples {
		contents[i] = s[:min(len(s), maxSample)]
	}
	dictionary, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: id, Contents: contents, History: history, Offsets: [3]int{1, 4, 8}, Level: t.encoderLevel(),
	})
	if err != nil {
		return nil
	}
	return dictionary
}

func (t *Trainer) encoderLevel() zstd.EncoderLevel {
	if t.options.Level == LevelBetter {
		return zstd.SpeedBetterCompression
	}
	return zstd.SpeedFastest
}
