package zstd

import (
	"errors"
	"math/rand/v2"

	"github.com/klauspost/compress/zstd"

	"github.com/crdcache/crdcache/storage/internal/dictionary"
)

// Compressor compresses and decompresses one object at a time. It is the Compressor of package
// dynamicinformer.
type Compressor = interface {
	// Compress appends the compressed form of src to dst, and returns the result.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress made src of to dst, and returns the result. It must not change src.
	// The error is for data that is damaged.
	Decompress(dst, src []byte) ([]byte, error)
}

// Level says how much time to spend on compressing; decompressing takes the same time after any.
type Level int

const (
	// LevelFast takes the least time. It is the default.
	LevelFast Level = iota
	// LevelBetter takes several times as long for a few percent less memory.
	LevelBetter
)

// Options configure a Trainer. The zero value works.
type Options struct {
	// DictionarySize is the size of dictionaries in bytes, about. Default: 32 KiB.
	DictionarySize int
	// Level is how much time to spend. Default: LevelFast.
	Level Level
}

const defaultDictionary = 32 << 10

// Trainer makes compressors for types of objects.
type Trainer struct{ options Options }

// New returns a Trainer.
func New(options Options) *Trainer {
	if options.DictionarySize <= 0 {
		options.DictionarySize = defaultDictionary
	}
	return &Trainer{options: options}
}

var errNoSamples = errors.New("learning a dictionary: there are no samples")

// Train returns a compressor for objects like the samples. It fails without samples.
func (t *Trainer) Train(samples [][]byte) (Compressor, error) {
	history := dictionary.Of(samples, t.options.DictionarySize)
	if len(history) == 0 {
		return nil, errNoSamples
	}
	id := 1<<15 + rand.Uint32N(1<<30) // smaller ones are reserved
	if learnt := t.learn(id, samples, history); learnt != nil {
		if c, err := newCompressor(t.level(), known{id: id, content: learnt}); err == nil {
			return c, nil
		}
	}
	return newCompressor(t.level(), known{id: id, content: history, raw: true})
}

// maxSample is how much of a sample statistics are made of.
const maxSample = 32 << 10

// learn returns a dictionary of the history with statistics of the samples, or nil where these are too few or
// too odd. The library panics for some it does not like.
func (t *Trainer) learn(id uint32, samples [][]byte, history []byte) (learnt []byte) {
	defer func() {
		if recover() != nil {
			learnt = nil
		}
	}()
	contents := make([][]byte, len(samples))
	for i, s := range samples {
		contents[i] = s[:min(len(s), maxSample)]
	}
	learnt, err := zstd.BuildDict(zstd.BuildDictOptions{
		ID: id, Contents: contents, History: history, Offsets: [3]int{1, 4, 8}, Level: t.level(),
	})
	if err != nil {
		return nil
	}
	return learnt
}

func (t *Trainer) level() zstd.EncoderLevel {
	if t.options.Level == LevelBetter {
		return zstd.SpeedBetterCompression
	}
	return zstd.SpeedFastest
}
