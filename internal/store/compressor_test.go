package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
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
	return s2.New(s2.Options{}).Train(samples)
}

// TestFewLargeObjectsAreEnough trains the compressor with fewer than 200 objects of 100 KB.
func TestFewLargeObjectsAreEnough(t *testing.T) {
	trainer := &countingTrainer{}
	format := NewPacked(nil, trainer)
	var objects []Item
	for n := range 20 {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Large", "data": strings.Repeat(fmt.Sprint(n), 100_000)}}
		u.SetName(fmt.Sprint("large-", n))
		objects = append(objects, format.Item(u))
	}
	if trainer.trainings != 1 || !objects[19].(*packed.Object).Compressed() {
		t.Errorf("after %d trainings (want 1), the last of 20 large objects: Compressed() = %v, want true",
			trainer.trainings,
			objects[19].(*packed.Object).Compressed())
	}
}

// TestRetraining changes the content of the objects. Another dictionary must be trained, and old objects must
// remain readable.
func TestRetraining(t *testing.T) {
	trainer := &countingTrainer{}
	format := NewPacked(nil, trainer)
	uncompressed := keyedCertificate(t, format, 0, 1).Item
	var objects []Item
	for n := range ratioCheckInterval + samplesToTrain {
		uncompressed = keyedCertificate(t, format, n, 1).Item
		objects = append(objects, uncompressed)
	}
	if !uncompressed.(*packed.Object).Compressed() {
		t.Fatal("objects are not compressed after training")
	}
	unlikeSamples := func(n int) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Other",
			"metadata": map[string]any{"name": fmt.Sprint("other-", n)},
			"data": map[string]any{"first": certificateUID(n), "second": certificateUID(n + 1),
				"third": "a text that certificates do not have"},
		}}
	}
	before := format.Item(unlikeSamples(0)).(*packed.Object)
	for n := range 2*ratioCheckInterval + samplesToTrain {
		format.Item(unlikeSamples(n))
	}
	runtime.KeepAlive(objects)
	after := format.Item(unlikeSamples(0)).(*packed.Object)
	if trainer.trainings < 2 || after.Size() >= before.Size() {
		t.Errorf("after %d trainings an object takes %d bytes, want less than %d", trainer.trainings,
			after.Size(), before.Size())
	}
	for _, item := range []Item{uncompressed, before, after} {
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
	var objects []Item
	for n := range 3 * samplesToTrain {
		item := keyedCertificate(t, format, n, 1).Item.(*packed.Object)
		if objects = append(objects, item); item.Compressed() {
			t.Fatalf("object %d is compressed without a compressor", n)
		}
	}
	if trainer.trainings != 1 {
		t.Errorf("%d trainings, want 1", trainer.trainings)
	}
	runtime.KeepAlive(objects)
}
