package store

import (
	"sync"
	"sync/atomic"
	"weak"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	// samplesToTrain is the number of objects to train a compressor with; a total of bytesToTrain is enough
	// too. Before that, and in smaller stores, objects remain uncompressed.
	samplesToTrain     = 200
	bytesToTrain       = 1 << 20
	ratioCheckInterval = 1000
	// worseRatioPercent is the compression ratio, in percent of the initial one, at which another compressor
	// is trained.
	worseRatioPercent = 150
)

// compressor compresses the objects of one type. It trains a packed.Compressor with the first objects, and
// another one when the compression ratio has become much worse. Objects refer to the Compressor that
// compressed them. It then moves bodies to files, if the format has any.
type compressor struct {
	trainer packed.Trainer // nil if objects are not compressed
	codec   atomic.Pointer[packed.Codec]
	// segments is nil if bodies stay in memory.
	segments *segments

	// sampling is set while samples are being collected; training guards them. The references are weak, so
	// that a type with too few objects does not retain replaced ones.
	sampling    atomic.Bool
	training    sync.Mutex
	samples     []weak.Pointer[packed.Object]
	sampleBytes int // length of the samples when they were taken
	// retained are samples that have been compressed in the meantime.
	retained []*packed.Object

	// bytesBefore and bytesAfter are the total lengths of count objects since the last check; with concurrent
	// writers they are approximate. initialRatio is the initial ratio of the current Compressor in percent.
	count, bytesBefore, bytesAfter, initialRatio atomic.Int64
}

func newCompressor(trainer packed.Trainer) *compressor {
	p := &compressor{trainer: trainer}
	p.sampling.Store(trainer != nil)
	return p
}

// isReady reports whether compress does all that it can.
func (p *compressor) isReady() bool {
	return (p.codec.Load() != nil || !p.sampling.Load()) && (p.segments == nil || p.segments.failure() == nil)
}

// compress returns the object compressed, with its body in a file if the format has files. It returns the
// object itself if that saves nothing, or before training.
func (p *compressor) compress(o *packed.Object) *packed.Object {
	small := o
	if !o.Compressed() {
		small = p.compressInMemory(o)
	}
	if p.segments == nil || o.Segment() != nil || p.sampling.Load() && p.codec.Load() == nil {
		return small
	}
	return p.segments.move(small)
}

func (p *compressor) compressInMemory(o *packed.Object) *packed.Object {
	if p.sampling.Load() {
		p.sample(o)
	}
	codec := p.codec.Load()
	if codec == nil {
		return o
	}
	small := codec.Compress(o)
	p.bytesBefore.Add(int64(o.Len()))
	p.bytesAfter.Add(int64(small.Len()))
	if p.count.Add(1)%ratioCheckInterval == 0 {
		p.checkRatio()
	}
	return small
}

// sample collects the object as a sample, and trains a Compressor when there are enough.
func (p *compressor) sample(o *packed.Object) {
	if _, ok := o.JSON(); !ok {
		return
	}
	p.training.Lock()
	defer p.training.Unlock()
	if !p.sampling.Load() {
		return
	}
	p.samples, p.sampleBytes = append(p.samples, weak.Make(o)), p.sampleBytes+o.Len()
	if p.codec.Load() != nil {
		p.retained = append(p.retained, o)
	}
	if len(p.samples) < samplesToTrain && p.sampleBytes < bytesToTrain {
		return
	}
	samples := p.liveSamples()
	if len(samples) < samplesToTrain && p.sampleBytes < bytesToTrain {
		return
	}
	p.samples, p.retained, p.sampleBytes = nil, nil, 0
	p.sampling.Store(false)
	trained, err := p.trainer.Train(samples)
	if err != nil {
		utilruntime.HandleError(err) // objects remain uncompressed
		return
	}
	p.initialRatio.Store(0)
	p.codec.Store(packed.NewCodec(trained))
}

// liveSamples drops samples that were freed and returns the JSON of the others.
func (p *compressor) liveSamples() [][]byte {
	var samples [][]byte
	remaining := p.samples[:0]
	p.sampleBytes = 0
	for _, s := range p.samples {
		o := s.Value()
		if o == nil {
			continue
		}
		text, _ := o.JSON()
		samples, remaining, p.sampleBytes = append(samples, []byte(text)), append(remaining, s),
			p.sampleBytes+len(text)
	}
	p.samples = remaining
	return samples
}

// checkRatio compares the compression ratio with the initial one and requests samples if it is much worse.
func (p *compressor) checkRatio() {
	percent := 100 * p.bytesAfter.Swap(0) / max(p.bytesBefore.Swap(0), 1)
	first := p.initialRatio.Load()
	switch {
	case first == 0:
		p.initialRatio.Store(max(percent, 1))
	case percent*100 > first*worseRatioPercent:
		p.sampling.Store(true)
	}
}
