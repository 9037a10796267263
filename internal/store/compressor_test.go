package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/storage/zstd"
)

type countingTrainer struct {
	trainings int
	err       error
}

func (s *countingTrainer) Train(samples [][]byte) (packed.Compressor, error) {
	s.trainings++
	if s.err != nil {
		return nil, s.err
	}
	return zstd.New(zstd.Options{}).Train(samples)
}

func TestCompressionBeginsWithSamples(t *testing.T) {
	trainer := &countingTrainer{}
	format := NewPacked(nil, trainer)
	var kept []Item // as in a store, because samples are weak
	for n := range samplesToTrain + 10 {
		item := keyedCertificate(t, format, n, 1).Item.(*packed.Object)
		kept = append(kept, item)
		if want := n >= samplesToTrain-1; item.Compressed() != want {
			t.Fatalf("object %d: Compressed() = %v, want %v", n, item.Compressed(), want)
		}
	}
	if trainer.trainings != 1 {
		t.Errorf("%d trainings, want 1", trainer.trainings)
	}
	runtime.KeepAlive(kept)
}

// TestFewLargeObjectsAreEnough trains the compressor with fewer than 200 objects of 100 KB.
func TestFewLargeObjectsAreEnough(t *testing.T) {
	trainer := &countingTrainer{}
	format := NewPacked(nil, trainer)
	var kept []Item
	for n := range 20 {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Large", "data": strings.Repeat(fmt.Sprint(n), 100_000)}}
		u.SetName(fmt.Sprint("large-", n))
		kept = append(kept, format.Item(u))
	}
	if trainer.trainings != 1 || !kept[19].(*packed.Object).Compressed() {
		t.Errorf("after %d trainings (want 1), the last of 20 large objects: Compressed() = %v, want true",
			trainer.trainings,
			kept[19].(*packed.Object).Compressed())
	}
}

// TestSamplesAreWeak checks that samples do not retain replaced objects before training.
func TestSamplesAreWeak(t *testing.T) {
	format := NewPacked(nil, &countingTrainer{})
	gone := make(chan struct{})
	func() {
		o := keyedCertificate(t, format, 1, 1).Item.(*packed.Object)
		runtime.AddCleanup(o, func(c chan struct{}) { close(c) }, gone)
	}()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-timeout.C:
			t.Fatal("timed out waiting for the replaced object to be freed")
		default:
		}
	}
}

// TestRetraining changes the content of the objects. Another dictionary must be trained, and old objects must
// remain readable.
func TestRetraining(t *testing.T) {
	trainer := &countingTrainer{}
	format := NewPacked(nil, trainer)
	early := keyedCertificate(t, format, 0, 1).Item
	var kept []Item
	for n := range ratioCheckInterval + samplesToTrain {
		early = keyedCertificate(t, format, n, 1).Item
		kept = append(kept, early)
	}
	if !early.(*packed.Object).Compressed() {
		t.Fatal("objects are not compressed after training")
	}
	other := func(n int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Other",
			"metadata": map[string]any{"name": fmt.Sprint("other-", n)},
			"data": map[string]any{"first": certificateUID(n), "second": certificateUID(n + 1),
				"third": "a text that certificates do not have"},
		}}
	}
	before := format.Item(other(0)).(*packed.Object)
	for n := range 2*ratioCheckInterval + samplesToTrain {
		format.Item(other(n))
	}
	runtime.KeepAlive(kept)
	after := format.Item(other(0)).(*packed.Object)
	if trainer.trainings < 2 || after.Size() >= before.Size() {
		t.Errorf("after %d trainings an object takes %d bytes, want less than %d", trainer.trainings,
			after.Size(), before.Size())
	}
	for _, item := range []Item{early, before, after} {
		decode(t, item)
	}
}

// TestTrainingFails checks that objects stay uncompressed, and that the error is reported once.
func TestTrainingFails(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	utilruntime.ErrorHandlers = nil
	trainer := &countingTrainer{err: errors.New("no")}
	format := NewPacked(nil, trainer)
	var kept []Item
	for n := range 3 * samplesToTrain {
		item := keyedCertificate(t, format, n, 1).Item.(*packed.Object)
		if kept = append(kept, item); item.Compressed() {
			t.Fatalf("object %d is compressed without a compressor", n)
		}
	}
	if trainer.trainings != 1 {
		t.Errorf("%d trainings, want 1", trainer.trainings)
	}
	runtime.KeepAlive(kept)
}

// TestIncompressibleObjects checks that objects stay uncompressed if they do not shrink.
func TestIncompressibleObjects(t *testing.T) {
	format := NewPacked(nil, zstd.New(zstd.Options{}))
	var kept []Item
	for n := range 2 * samplesToTrain {
		kept = append(kept, keyedCertificate(t, format, n, 1).Item)
	}
	if !kept[len(kept)-1].(*packed.Object).Compressed() {
		t.Fatal("objects are not compressed after training")
	}
	o, err := format.Packer().Pack([]byte(`{"kind":"A","apiVersion":"b/c","metadata":{"name":"` +
		certificateUID(1) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if item := format.Item(o).(*packed.Object); item.Compressed() && item.Size() >= o.Size() {
		t.Errorf("an incompressible object of %d bytes takes %d bytes compressed", o.Size(), item.Size())
	}
}
