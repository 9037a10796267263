package informer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/newer"
	"github.com/crdcache/crdcache/internal/packed"
)

// benchmarkSource is a ListerWatcher with one watch, whose events a benchmark sends.
type benchmarkSource struct {
	list   []unstructured.Unstructured
	events chan watch.Event
}

func (p *benchmarkSource) IsWatchListSemanticsUnSupported() bool { return true }

func (p *benchmarkSource) List(metav1.ListOptions) (runtime.Object, error) {
	list := &unstructured.UnstructuredList{Items: p.list}
	list.SetResourceVersion("1")
	return list, nil
}

func (p *benchmarkSource) Watch(metav1.ListOptions) (watch.Interface, error) { return p, nil }

func (p *benchmarkSource) ResultChan() <-chan watch.Event { return p.events }

func (p *benchmarkSource) Stop() {}

// benchObject returns a small object, so that a benchmark measures the delivery and not their creation.
func benchObject(n, version int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Thing",
		"metadata": map[string]any{
			"name":            "object-" + strconv.Itoa(n),
			"namespace":       "ns-" + strconv.Itoa(n%100),
			"uid":             "uid-" + strconv.Itoa(n),
			"resourceVersion": strconv.Itoa(version),
			"labels":          map[string]any{"app": "app-" + strconv.Itoa(n%10)},
		},
	}}
}

func benchItems(n int) []unstructured.Unstructured {
	items := make([]unstructured.Unstructured, n)
	for k := range items {
		items[k] = *benchObject(k, 1)
	}
	return items
}

// comparedInformers are this informer and client-go's, both with the index by namespace.
var comparedInformers = []struct {
	name string
	make func(cache.ListerWatcher) cache.SharedIndexInformer
}{
	{"crdcache", func(lw cache.ListerWatcher) cache.SharedIndexInformer {
		return New(lw, Options{ExampleObject: &unstructured.Unstructured{}})
	}},
	{"client-go", func(lw cache.ListerWatcher) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(lw, &unstructured.Unstructured{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}},
}

// BenchmarkEvents measures one MODIFIED event from the watch to the last of n handlers, which keep up, or
// merge events (coalescing) if they do not.
func BenchmarkEvents(b *testing.B) {
	for _, handlers := range []int{0, 1, 5} {
		for _, c := range comparedInformers {
			b.Run(fmt.Sprintf("handlers=%d/%s", handlers, c.name), func(b *testing.B) {
				b.ReportAllocs()
				benchEvents(b, c.make, handlers, false)
			})
		}
		b.Run(fmt.Sprintf("handlers=%d/coalescing", handlers), func(b *testing.B) {
			b.ReportAllocs()
			benchEvents(b, comparedInformers[0].make, handlers, true)
		})
	}
}

func benchEvents(b *testing.B, build func(cache.ListerWatcher) cache.SharedIndexInformer, handlers int,
	coalesce bool) {
	const objects = 1000
	p := &benchmarkSource{list: benchItems(objects), events: make(chan watch.Event, 100)}
	inf := build(p)
	events := make([]watch.Event, b.N)
	for n := range events {
		events[n] = watch.Event{Type: watch.Modified, Object: benchObject(n%objects, n+2)}
	}
	last := strconv.Itoa(b.N + 1)
	var delivered sync.WaitGroup
	for range handlers {
		delivered.Add(1)
		seen := func(obj any) {
			if obj.(*unstructured.Unstructured).GetResourceVersion() == last {
				delivered.Done()
			}
		}
		var handler cache.ResourceEventHandler = cache.ResourceEventHandlerFuncs{AddFunc: seen,
			UpdateFunc: func(_, obj any) { seen(obj) }}
		if coalesce {
			handler = coalescingHandler{handler, nil, true}
		}
		if _, err := inf.AddEventHandler(handler); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { // ended by cancel
		defer close(done)
		inf.RunWithContext(ctx)
	}()
	<-newer.Done(inf, nil)
	b.ResetTimer()
	for _, e := range events {
		p.events <- e
	}
	delivered.Wait()
	for inf.LastSyncResourceVersion() != last {
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	cancel()
	<-done
}

// BenchmarkPartsList lists each of many namespaces once. Its cost must not depend on the objects of other
// partitions.
func BenchmarkPartsList(b *testing.B) {
	for _, parts := range []int{100, 1000} {
		b.Run(fmt.Sprint(parts), func(b *testing.B) {
			i := New(nil, Options{})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			g, err := i.beginIncarnation(ctx, cancel)
			if err != nil {
				b.Fatal(err)
			}
			partitions := make([]*partition, parts)
			for k := range partitions {
				partitions[k] = g.partition(&Partition{Namespace: "ns-" + strconv.Itoa(k)})
			}
			i.mu.partitions = partitions
			lists := make([][]any, parts)
			for k := range lists {
				for n := range 50 {
					o := benchObject(n, 1)
					o.SetNamespace("ns-" + strconv.Itoa(k))
					lists[k] = append(lists[k], o)
				}
			}
			for b.Loop() {
				for k, list := range lists {
					if err := partitions[k].Replace(list, "1"); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*parts), "µs/part")
			i.endIncarnation(g)
			i.Stop()
			<-i.Stopped()
		})
	}
}

// BenchmarkQueue measures one update in the queue of a handler: keeping up, with a burst of 1,000 keys, and
// merged with a pending update.
func BenchmarkQueue(b *testing.B) {
	const keys = 1000
	var items [keys]Item
	for k := range items {
		items[k] = packedItem(b, k)
	}
	for _, coalesce := range []bool{false, true} {
		for _, burst := range []int{1, keys, 2 * keys} {
			b.Run(fmt.Sprintf("coalesce=%v/burst=%d", coalesce, burst), func(b *testing.B) {
				b.ReportAllocs()
				i := New(nil, Options{})
				handle, err := i.AddEventHandler(coalescingHandler{cache.ResourceEventHandlerFuncs{},
					nil, coalesce})
				if err != nil {
					b.Fatal(err)
				}
				r := handle.(*Registration)
				turn, done := make(chan struct{}), make(chan struct{})
				defer r.queue.Close()
				r.start(func() {})
				b.ResetTimer()
				for n := 0; n < b.N; n += burst {
					r.Mark(func() { <-turn })
					for k := range burst {
						r.push(newUpdate(items[k%keys], items[k%keys], false))
					}
					r.Mark(func() { done <- struct{}{} })
					turn <- struct{}{}
					<-done
				}
			})
		}
	}
}

func packedItem(b *testing.B, n int) Item {
	o, err := packed.NewPacker(nil).Pack(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"A","metadata":{`+
		`"name":"object-%d","namespace":"ns-%d","resourceVersion":"1","uid":"uid-%d"}}`, n, n%100, n))
	if err != nil {
		b.Fatal(err)
	}
	return o
}
