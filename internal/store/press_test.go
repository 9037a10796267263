package store

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/storage/zstd"
)

// school counts how often it trains.
type school struct {
	trainings int
	err       error
}

func (s *school) Train(samples [][]byte) (packed.Compressor, error) {
	s.trainings++
	if s.err != nil {
		return nil, s.err
	}
	return zstd.New(zstd.Options{}).Train(samples)
}

func TestCompressionBeginsWithSamples(t *testing.T) {
	trainer := &school{}
	form := NewPacked(nil, trainer)
	for n := range samplesToTrain + 10 {
		item := keyedCertificate(t, form, n, 1).Item.(*packed.Object)
		if want := n >= samplesToTrain-1; item.Compressed() != want {
			t.Fatalf("object %d is compressed: %v", n, item.Compressed())
		}
	}
	if trainer.trainings != 1 {
		t.Errorf("%d trainings", trainer.trainings)
	}
}

// TestOtherObjectsCallForTraining changes what the objects are like: a new dictionary is learnt, and what the old one
// is needed for can still be read.
func TestOtherObjectsCallForTraining(t *testing.T) {
	trainer := &school{}
	form := NewPacked(nil, trainer)
	early := keyedCertificate(t, form, 0, 1).Item
	for n := range lookEvery + samplesToTrain {
		early = keyedCertificate(t, form, n, 1).Item
	}
	if !early.(*packed.Object).Compressed() {
		t.Fatal("nothing is compressed")
	}
	other := func(n int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Other", "metadata": map[string]any{"name": fmt.Sprint("other-", n)},
			"data": map[string]any{"first": certificateUID(n), "second": certificateUID(n + 1), "third": "a text that certificates do not have"},
		}}
	}
	before := form.Item(other(0)).(*packed.Object)
	for n := range 2*lookEvery + samplesToTrain {
		form.Item(other(n))
	}
	after := form.Item(other(0)).(*packed.Object)
	if trainer.trainings < 2 || after.Size() >= before.Size() {
		t.Errorf("after %d trainings an object takes %d bytes, before %d", trainer.trainings, after.Size(), before.Size())
	}
	for _, item := range []Item{early, before, after} {
		decode(t, item)
	}
}

// TestCompressionCanFail: objects are kept as they are, and the failure is reported once.
func TestCompressionCanFail(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	utilruntime.ErrorHandlers = nil
	trainer := &school{err: errors.New("no")}
	form := NewPacked(nil, trainer)
	for n := range 3 * samplesToTrain {
		if item := keyedCertificate(t, form, n, 1).Item.(*packed.Object); item.Compressed() {
			t.Fatalf("object %d is compressed", n)
		}
	}
	if trainer.trainings != 1 {
		t.Errorf("%d trainings", trainer.trainings)
	}
}

// TestSmallObjectsStayPlain: what does not shrink is kept as it is.
func TestSmallObjectsStayPlain(t *testing.T) {
	form := NewPacked(nil, zstd.New(zstd.Options{}))
	for n := range 2 * samplesToTrain {
		keyedCertificate(t, form, n, 1)
	}
	o, err := form.Packer().Pack([]byte(`{"kind":"A","apiVersion":"b/c","metadata":{"name":"` + certificateUID(1) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if item := form.Item(o).(*packed.Object); item.Compressed() && item.Size() >= o.Size() {
		t.Errorf("an object of %d bytes takes %d compressed", o.Size(), item.Size())
	}
}
