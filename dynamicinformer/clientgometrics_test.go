package dynamicinformer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// metricsRecorder is a provider of client-go's informer metrics. Keys of series are "name resource".
type metricsRecorder struct {
	mu           sync.Mutex
	versions     map[string]float64
	observations map[string]int
	changed      chan struct{} // replaced by each change
}

var recordedMetrics = sync.OnceValue(func() *metricsRecorder {
	r := &metricsRecorder{changed: make(chan struct{}), versions: map[string]float64{},
		observations: map[string]int{}}
	cache.SetInformerMetricsProvider(r)
	return r
})

type metricFunc func(float64)

func (f metricFunc) Set(value float64)     { f(value) }
func (f metricFunc) Observe(value float64) { f(value) }

func (r *metricsRecorder) metric(id cache.InformerNameAndResource, record func(string, float64)) metricFunc {
	return func(value float64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		record(id.Name()+" "+id.GroupVersionResource().Resource, value)
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

func (*metricsRecorder) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return metricFunc(func(float64) {})
}

func (r *metricsRecorder) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return r.metric(id, func(key string, _ float64) { r.observations[key]++ })
}

func (r *metricsRecorder) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return r.metric(id, func(key string, value float64) { r.versions[key] = value })
}

// await waits until the store of a series is at a resource version, and returns its number of observations.
func (r *metricsRecorder) await(t *testing.T, key, version string) int {
	t.Helper()
	want, err := strconv.ParseFloat(version, 64)
	must(t, err)
	for ctx := longContext(t); ; {
		r.mu.Lock()
		changed, at, observations := r.changed, r.versions[key], r.observations[key]
		r.mu.Unlock()
		if at == want {
			return observations
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("the store of %q is at %v, want %v", key, at, want)
		}
	}
}

// TestClientGoMetrics compares the metrics that a registered provider receives from an informer with those of
// client-go's informer: the version of the store, and one duration for the list and for each event.
func TestClientGoMetrics(t *testing.T) {
	recorder, server := recordedMetrics(), newServer(t)
	recorder.mu.Lock()
	clear(recorder.observations) // of an earlier run of this test
	recorder.mu.Unlock()
	named := func(name string) *cache.InformerName {
		n, err := cache.NewInformerName(name)
		must(t, err)
		t.Cleanup(n.Release)
		return n
	}
	client := server.Client(t).Resource(widgets)
	stock := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, o)
		},
		WatchFuncWithContext: client.Watch,
	}, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{
		Identifier: named("client-go").WithResource(widgets), InformerMetricsProvider: recorder}) // 0.36 needs both
	ctx, cancel := context.WithCancel(longContext(t))
	defer cancel()
	go stock.RunWithContext(ctx)
	f := newFactory(t, server, Options{InformerName: named("crdcache"), Linger: -1})
	must(t, f.Start(ctx))
	for round := 1; round <= 2; round++ { // a series continues when the type is acquired again
		measured, other := acquire(t, f, widgets), acquire(t, f, widgets, ResourceOptions{PageSize: 7})
		must(t, f.WaitForSync(ctx, widgets))
		cache.WaitForCacheSync(ctx.Done(), stock.HasSynced)
		created := widget("a", fmt.Sprintf("w%d", round))
		server.Create(t, widgets, created)
		newest, err := client.Namespace("a").Get(ctx, created.GetName(), metav1.GetOptions{})
		must(t, err)
		recorder.await(t, "client-go widgets", newest.GetResourceVersion())
		if n := recorder.await(t, "crdcache widgets", newest.GetResourceVersion()); n != 2*round {
			t.Errorf("%d durations were observed after %d lists and events, want one each", n, 2*round)
		}
		measured.Release()
		other.Release()
	}
}
