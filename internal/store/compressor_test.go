package store

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

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
	return s2.New().Train(samples)
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

// slowExtractor is an Extractor that waits for resume. It closes started at its first call.
type slowExtractor struct {
	fixedExtractor
	started, resume chan struct{}
}

func (s *slowExtractor) KeysJSON(json []byte, keys [][]string) [][]string {
	select {
	case <-s.started:
	default:
		close(s.started)
	}
	<-s.resume
	return s.fixedExtractor.KeysJSON(json, keys)
}

// TestConcurrentReplacement replaces an index twice at the same time. Reads by the index work after each
// replacement, whichever is complete first, and the name stays in use.
func TestConcurrentReplacement(t *testing.T) {
	for _, first := range []int{0, 1} {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			s := New(Options{Format: NewPacked(nil, nil),
				Extractors: []Extractor{&fixedExtractor{[]string{"a"}}}})
			replaceAll(t, s, 3, 1)
			var extractors [2]*slowExtractor
			var ended [2]chan error
			for n := range extractors {
				e := &slowExtractor{fixedExtractor{[]string{"a"}}, make(chan struct{}), make(chan struct{})}
				extractors[n], ended[n] = e, make(chan error, 1)
				go func() { ended[n] <- s.AddExtractor(e, "a") }() // ends after resume is closed
				<-e.started
			}
			for _, n := range []int{first, 1 - first} {
				close(extractors[n].resume)
				if err := <-ended[n]; err != nil {
					t.Error(err)
				}
				if keys, err := s.Snapshot().KeysByIndex("a", "a value of a"); err != nil || len(keys) != 3 {
					t.Errorf("after replacement %d: KeysByIndex() = %v, %v, want 3 keys", n, keys, err)
				}
			}
			if err := s.AddIndexers(cache.Indexers{"a": byUID}); err == nil {
				t.Error("AddIndexers succeeded for the name of an existing index")
			}
		})
	}
}

// formats returns the formats that store complete objects.
func formats(t testing.TB) map[string]Format {
	return map[string]Format{
		"object":     Objects(managedFieldsPruner(t)),
		"packed":     NewPacked(managedFieldsPruner(t), nil),
		"compressed": NewPacked(managedFieldsPruner(t), s2.New()),
	}
}

// TestReadersDoNotWait calls every read method while a writer holds its lock, as during the building of an
// index.
func TestReadersDoNotWait(t *testing.T) {
	s := New(Options{Format: NewPacked(nil, nil), Indexers: byNamespace()})
	replaceAll(t, s, 10, 1)
	s.write.Lock()
	defer s.write.Unlock()
	now := s.Snapshot()
	item, found := now.Get("tenant-3/certificate-3")
	if !found || now.Len() != 10 || len(now.Items()) != 10 || len(now.Keys()) != 10 ||
		now.ResourceVersion() != "1" || now.Indexers()[cache.NamespaceIndex] == nil {
		t.Errorf("the read methods disagree: Len() = %d, want 10 objects from each", now.Len())
	}
	object := s.Format().Object(item)
	for operation, read := range map[string]func() (int, error){
		"items": func() (int, error) {
			items, err := now.ItemsByIndex(cache.NamespaceIndex, "tenant-3")
			return len(items), err
		},
		"keys": func() (int, error) {
			keys, err := now.KeysByIndex(cache.NamespaceIndex, "tenant-3")
			return len(keys), err
		},
		"like": func() (int, error) {
			items, err := now.ItemsByIndexOf(cache.NamespaceIndex, object)
			return len(items), err
		},
		"values": func() (int, error) { return len(now.IndexValues(cache.NamespaceIndex)) - 9, nil },
	} {
		if n, err := read(); n != 1 || err != nil {
			t.Errorf("%s: %d results, %v, want 1", operation, n, err)
		}
	}
}

// TestFormats stores an object in each format and reads it back.
func TestFormats(t *testing.T) {
	for name, format := range formats(t) {
		t.Run(name, func(t *testing.T) {
			for n := range 2 * samplesToTrain { // to have compressed objects
				keyed := keyedCertificate(t, format, n, 1)
				want, err := packed.NewPacker(managedFieldsPruner(t)).Pack(certificate(n, 1))
				must(t, err)
				if diff := cmp.Diff(want.Unstructured(), format.Object(keyed.Item)); diff != "" {
					t.Fatalf("object %d (-want +got):\n%s", n, diff)
				}
				if n == 2*samplesToTrain-1 && keyed.Item == format.Item(want.Unstructured()) &&
					name != "object" {
					t.Error("two calls of Item returned the same item")
				}
			}
			for _, odd := range []any{"text", 7, (*unstructured.Unstructured)(nil), struct{}{}} {
				if got := format.Object(format.Item(odd)); got != odd {
					t.Errorf("Object(Item(%v)) = %v, want the argument", odd, got)
				}
			}
		})
	}
}
