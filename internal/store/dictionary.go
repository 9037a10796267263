package store

import (
	"sync"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/packed"
)

const (
	// samplesToTrain is the number of objects to train a compressor with; a total of bytesToTrain is enough
	// too. Before that, and in smaller stores, objects remain uncompressed.
	samplesToTrain     = 200
	bytesToTrain       = 1 << 20
	ratioCheckInterval = 1000
	// worseRatioPercent is the ratio, in percent of the initial one, at which another compressor is trained.
	worseRatioPercent = 150
)

// Dictionary trains a packed.Compressor with the first objects of a type, and another one when the
// compression ratio has become much worse. Formats that share a Dictionary train it together. Objects refer
// to the Compressor that compressed them. A Dictionary is itself a packed.Trainer, so that a shared one can
// be passed in place of its Trainer. It is safe for concurrent use.
type Dictionary struct {
	packed.Trainer
	codec atomic.Pointer[packed.Codec]

	// isSampling is set while samples are being collected; training guards them. The references are weak, so
	// that a type with too few objects does not retain replaced ones.
	isSampling  atomic.Bool
	training    sync.Mutex
	samples     []weak.Pointer[packed.Object]
	sampleBytes int // length of the samples when they were taken
	// retained are samples that have been compressed in the meantime.
	retained []*packed.Object

	// count is the number of objects compressed since the last check. bytesBefore and bytesAfter are their
	// total lengths before and after compression, which are approximate with concurrent writers.
	// initialRatio is the initial ratio of the current Compressor in percent.
	count, bytesBefore, bytesAfter, initialRatio atomic.Int64
}

// dictionaryOf returns trainer if it is a Dictionary, or else a new one.
func dictionaryOf(trainer packed.Trainer) *Dictionary {
	if d, ok := trainer.(*Dictionary); ok {
		return d
	}
	d := &Dictionary{Trainer: trainer}
	d.isSampling.Store(true)
	return d
}

// isTrained reports whether there is a Compressor.
func (d *Dictionary) isTrained() bool { return d.codec.Load() != nil }

// Dictionaries has the Dictionary of each type, which equal types of several clusters share. It retains only
// those in use. It is safe for concurrent use.
type Dictionaries struct {
	inUse jsontext.Shared[dictionaryKey, Dictionary]
}

// dictionaryKey identifies objects that resemble each other.
type dictionaryKey struct {
	gr      schema.GroupResource
	fields  string
	trainer packed.Trainer
}

// Get returns the Dictionary for objects of a type. fields identifies the fields that remain. trainer must
// be comparable. It returns nil if trainer is nil.
func (all *Dictionaries) Get(gr schema.GroupResource, fields string, trainer packed.Trainer) packed.Trainer {
	if trainer == nil {
		return nil
	}
	build := func() (*Dictionary, error) { return dictionaryOf(trainer), nil }
	d, _ := all.inUse.Get(dictionaryKey{gr, fields, trainer}, build) // it does not fail
	return d
}

// isReady reports whether compress works as configured: there is a Compressor, or none will be trained.
func (d *Dictionary) isReady() bool { return d.isTrained() || !d.isSampling.Load() }

// compress returns a compressed copy of an object. It returns the object itself if it is already compressed,
// if compression saves nothing, or before training.
func (d *Dictionary) compress(o *packed.Object) *packed.Object {
	if o.Compressed() {
		return o
	}
	if d.isSampling.Load() {
		d.sample(o)
	}
	codec := d.codec.Load()
	if codec == nil {
		return o
	}
	compressed := codec.Compress(o)
	d.bytesBefore.Add(int64(o.Len()))
	d.bytesAfter.Add(int64(compressed.Len()))
	if d.count.Add(1)%ratioCheckInterval == 0 {
		d.checkRatio()
	}
	return compressed
}

// sample collects the object as a sample, and trains a Compressor when there are enough.
func (d *Dictionary) sample(o *packed.Object) {
	if _, ok := o.JSON(); !ok {
		return
	}
	d.training.Lock()
	defer d.training.Unlock()
	if !d.isSampling.Load() {
		return
	}
	d.samples, d.sampleBytes = append(d.samples, weak.Make(o)), d.sampleBytes+o.Len()
	if d.codec.Load() != nil {
		d.retained = append(d.retained, o)
	}
	if len(d.samples) < samplesToTrain && d.sampleBytes < bytesToTrain {
		return
	}
	samples := d.liveSamples()
	if len(samples) < samplesToTrain && d.sampleBytes < bytesToTrain {
		return
	}
	d.samples, d.retained, d.sampleBytes = nil, nil, 0
	d.isSampling.Store(false)
	trained, err := d.Train(samples)
	if err != nil {
		utilruntime.HandleError(err) // objects remain uncompressed
		return
	}
	d.initialRatio.Store(0)
	d.codec.Store(packed.NewCodec(trained))
}

// liveSamples drops samples that were freed and returns the JSON of the others.
func (d *Dictionary) liveSamples() [][]byte {
	var samples [][]byte
	remaining := d.samples[:0]
	d.sampleBytes = 0
	for _, s := range d.samples {
		o := s.Value()
		if o == nil {
			continue
		}
		text, _ := o.JSON()
		samples, remaining, d.sampleBytes = append(samples, []byte(text)), append(remaining, s),
			d.sampleBytes+len(text)
	}
	d.samples = remaining
	return samples
}

// checkRatio compares the compression ratio with the initial one and requests samples if it is much worse.
func (d *Dictionary) checkRatio() {
	percent := 100 * d.bytesAfter.Swap(0) / max(d.bytesBefore.Swap(0), 1)
	initial := d.initialRatio.Load()
	switch {
	case initial == 0:
		d.initialRatio.Store(max(percent, 1))
	case percent*100 > initial*worseRatioPercent:
		d.isSampling.Store(true)
	}
}
