package informer_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestConformance runs the conformance scenarios with the formats that store complete objects in memory.
func TestConformance(t *testing.T) {
	server := apitest.New(t, apitest.ConfigMaps, apitest.Namespaces)
	conformance.Run(t, server.Config(),
		conformance.Subject{Name: "object", New: newSubject},
		conformance.Subject{Name: "packed",
			New: withFormat(func(testing.TB) store.Format { return store.NewPacked(nil, nil) })},
		conformance.Subject{Name: "compressed",
			New: withFormat(compressedFormats(&trainOnce{Trainer: s2.New()},
				store.NewPacked))},
		conformance.Subject{Name: "adaptive",
			New: sweptInformers(compressedFormats(&trainOnce{Trainer: s2.New()},
				store.NewAdaptive))},
	)
}

func listWatch(t testing.TB, setup conformance.Setup) informer.InlineWatcher {
	return informer.InlineWatcherOf(setup.ListWatch(t, conformance.DefaultClient))
}

func newSubject(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
	return informer.New(listWatch(t, setup), informer.Options{
		ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
	})
}

// withFormat returns a function that creates informers with the storage format that format returns.
func withFormat(format func(testing.TB) store.Format) func(testing.TB,
	conformance.Setup) cache.SharedIndexInformer {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		return informer.New(listWatch(t, setup), informer.Options{
			Format: format(t), ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
		})
	}
}

// sweptInformers returns a function that creates informers of packed objects, and sweeps the store of each
// informer until the end of the test.
func sweptInformers(format func(testing.TB) store.Format) func(testing.TB,
	conformance.Setup) cache.SharedIndexInformer {
	return func(t testing.TB, setup conformance.Setup) cache.SharedIndexInformer {
		adaptive := format(t).(*store.Packed)
		adaptive.SetCompressOnArrival(false)
		i := informer.New(listWatch(t, setup), informer.Options{
			Format: adaptive, ResyncPeriod: setup.Resync, Indexers: setup.Indexers,
		})
		stop, stopped := make(chan struct{}), make(chan struct{})
		t.Cleanup(func() {
			close(stop)
			<-stopped
		})
		go func() { // ended by the end of the test
			defer close(stopped)
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-ticker.C:
					for next, first := uint64(0), true; first || next != 0; first = false {
						next = i.Store().Sweep(next,
							[]store.Sweep{store.SweepAll, store.SweepPeriodic}[n%2]).Next
					}
				}
			}
		}()
		return i
	}
}

// trainOnce is a Trainer that trains once and then returns the same compressor, because training takes longer
// than a scenario.
type trainOnce struct {
	packed.Trainer
	train      sync.Once
	compressor packed.Compressor
	failure    error
}

func (o *trainOnce) Train(samples [][]byte) (packed.Compressor, error) {
	o.train.Do(func() { o.compressor, o.failure = o.Trainer.Train(samples) })
	return o.compressor, o.failure
}

// compressedFormats returns a function that creates formats that compress every object.
func compressedFormats(trainer packed.Trainer,
	newFormat func(*packed.Pruner, packed.Trainer) *store.Packed) func(testing.TB) store.Format {
	return func(t testing.TB) store.Format {
		format := newFormat(nil, trainer)
		format.SetCompressOnArrival(true)
		var stored []store.Item
		defer func() { runtime.KeepAlive(stored) }()
		for n := range 1000 {
			item := format.Item(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{
					"name": fmt.Sprint("name-", n), "namespace": "conformance", "uid": fmt.Sprint("uid-",
						n), "resourceVersion": fmt.Sprint(n),
					"labels": map[string]any{"suite": "conformance"},
				},
				"data": map[string]any{"value": fmt.Sprint(n)},
			}})
			if stored = append(stored, item); item.(*packed.Object).Compressed() {
				return format
			}
		}
		t.Fatal("no object is compressed after training")
		return nil
	}
}
