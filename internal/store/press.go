package store

import (
	"sync"
	"sync/atomic"
	"weak"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
)

const (
	// samplesToTrain is how many objects a compressor is trained with, and bytesToTrain how many bytes of
	// fewer and larger ones are enough. Until there are as many, and always where there are never more,
	// objects are kept as they are: so few cost little.
	samplesToTrain = 200
	bytesToTrain   = 1 << 20
	// lookEvery is how many objects it takes to see whether a compressor still pays.
	lookEvery = 1000
	// worseBy is how much worse (in percent) its results must become for another to be trained.
	worseBy = 150
)

// press compresses the objects of one type with a compressor that it has trained with the first of them, and
// trains another when they have changed so much that it no longer pays. Objects refer to the compressor that
// they were compressed with, so that it lives as long as they do.
type press struct {
	trainer packed.Trainer
	codec   atomic.Pointer[packed.Codec]

	// sampling says that samples are wanted; training guards them. They are held weakly, so that a type that
	// never has enough of them does not keep what it has replaced.
	sampling atomic.Bool
	training sync.Mutex
	samples  []weak.Pointer[packed.Object]
	bytes    int // of the samples when they were taken
	// held are samples that nothing else holds, because they have been compressed since.
	held []*packed.Object

	// before and after are the bytes that went in and came out since the last look, of count objects; with
	// many writers they are approximate. first is what the present compressor made of its first objects, in
	// percent.
	count, before, after, first atomic.Int64
}

func newPress(trainer packed.Trainer) *press {
	p := &press{trainer: trainer}
	p.sampling.Store(true)
	return p
}

// trained reports whether there is a compressor.
func (p *press) trained() bool { return p.codec.Load() != nil }

// compress returns the object compressed, or as it is where that does not save anything or nothing is known
// of the type yet.
func (p *press) compress(o *packed.Object) *packed.Object {
	if o.Compressed() {
		return o
	}
	if p.sampling.Load() {
		p.sample(o)
	}
	codec := p.codec.Load()
	if codec == nil {
		return o
	}
	small := codec.Compress(o)
	p.before.Add(int64(o.Len()))
	p.after.Add(int64(small.Len()))
	if p.count.Add(1)%lookEvery == 0 {
		p.judge()
	}
	return small
}

// sample takes the object as a sample, and trains a compressor when there are enough.
func (p *press) sample(o *packed.Object) {
	if _, ok := o.JSON(); !ok {
		return
	}
	p.training.Lock()
	defer p.training.Unlock()
	if !p.sampling.Load() {
		return
	}
	p.samples, p.bytes = append(p.samples, weak.Make(o)), p.bytes+o.Len()
	if p.codec.Load() != nil {
		p.held = append(p.held, o)
	}
	if len(p.samples) < samplesToTrain && p.bytes < bytesToTrain {
		return
	}
	samples := p.alive()
	if len(samples) < samplesToTrain && p.bytes < bytesToTrain {
		return
	}
	p.samples, p.held, p.bytes = nil, nil, 0
	p.sampling.Store(false)
	compressor, err := p.trainer.Train(samples)
	if err != nil {
		utilruntime.HandleError(err) // without a compressor, objects stay as they are
		return
	}
	p.first.Store(0)
	p.codec.Store(packed.NewCodec(compressor))
}

// alive drops the samples that are not in memory any more, and returns the others.
func (p *press) alive() [][]byte {
	var samples [][]byte
	kept := p.samples[:0]
	p.bytes = 0
	for _, s := range p.samples {
		o := s.Value()
		if o == nil {
			continue
		}
		text, _ := o.JSON()
		samples, kept, p.bytes = append(samples, []byte(text)), append(kept, s), p.bytes+len(text)
	}
	p.samples = kept
	return samples
}

// judge compares the results with the first ones, and asks for samples when they are much worse.
func (p *press) judge() {
	percent := 100 * p.after.Swap(0) / max(p.before.Swap(0), 1)
	first := p.first.Load()
	switch {
	case first == 0:
		p.first.Store(max(percent, 1))
	case percent*100 > first*worseBy:
		p.sampling.Store(true)
	}
}
