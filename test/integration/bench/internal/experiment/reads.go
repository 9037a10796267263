package experiment

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
)

// hotObjects is the number of objects that are read repeatedly, coldObjects of those that are read once.
const (
	hotObjects  = 100
	coldObjects = 2000
)

// readCache reads a filled cache, adds an index and reads by it.
func readCache(ctx context.Context, task Task, _ func() error) (Outcome, error) {
	cache := newCache(task, NoHandler, nil)
	reader, ok := cache.(Reader)
	if !ok {
		return Outcome{}, fmt.Errorf("%s cannot be read", task.Subject)
	}
	check(reader.Sync(ctx))
	check(awaitBackgroundWork(ctx, cache))
	r := &readMeasurement{reader: reader, budget: task.Budget, metrics: map[string]float64{},
		returnsCopies: task.Subject == ControllerRuntime}
	r.keys = reader.Keys()
	slices.Sort(r.keys) // equal for all subjects
	r.measureGets()
	r.measureMany(ListHot, r.reader.ListAll, len(r.keys))
	r.measureNamespace()
	r.measureIndexAdd()
	r.measureIndexReads()
	runtime.KeepAlive(cache)
	return Outcome{Metrics: r.metrics}, nil
}

// readMeasurement measures reads of a reader and collects the metrics.
type readMeasurement struct {
	reader  Reader
	budget  time.Duration
	keys    []string
	metrics map[string]float64
	// returnsCopies skips GetCopy, because each Get of the reader copies.
	returnsCopies bool
}

// selectEvenly returns up to count elements at equal distances.
func selectEvenly(elements []string, count int) []string {
	if len(elements) <= count {
		return elements
	}
	picked := make([]string, count)
	for i := range picked {
		picked[i] = elements[i*len(elements)/count]
	}
	return picked
}

// coldGet returns the cost of reading each of the objects once.
func coldGet(r Reader, keys []string) float64 {
	return averageColdCost(len(keys), func(n int) error {
		_, err := r.Get(keys[n])
		return err
	})
}

func (r *readMeasurement) measureGets() {
	get := func(key string) error {
		_, err := r.reader.Get(key)
		return err
	}
	names := selectEvenly(r.keys, coldObjects)
	r.metrics[GetCold] = coldGet(r.reader, names)
	r.measureHot(GetHot, r.keys, get)
	if r.returnsCopies {
		return
	}
	r.metrics[GetCopy] = averageColdCost(len(names), func(n int) error {
		object, err := r.reader.Get(names[n])
		if o, ok := object.(k8sruntime.Object); ok {
			o.DeepCopyObject()
		}
		return err
	})
}

// measureHot measures reads that repeat a few of the names.
func (r *readMeasurement) measureHot(metric string, names []string, read func(string) error) {
	names = selectEvenly(names, hotObjects)
	r.metrics[metric] = averageCost(r.budget, func(n int) error { return read(names[n%len(names)]) })
}

// measureNamespace reads all objects of the first namespace.
func (r *readMeasurement) measureNamespace() {
	namespace, _, _ := strings.Cut(r.keys[0], "/")
	want := 0
	for _, key := range r.keys {
		if strings.HasPrefix(key, namespace+"/") {
			want++
		}
	}
	r.measureMany(NamespaceHot, func() (int, error) { return r.reader.ListNamespace(namespace) }, want)
}

// measureMany measures repeated reads of many objects.
func (r *readMeasurement) measureMany(metric string, list func() (int, error), want int) {
	cost := averageCost(r.budget, func(int) error {
		got, err := list()
		if err == nil && got != want {
			err = fmt.Errorf("%d objects were listed, want %d", got, want)
		}
		return err
	})
	r.metrics[metric] = cost / float64(want)
}

// measureIndexAdd adds an index while another goroutine reads.
func (r *readMeasurement) measureIndexAdd() {
	before := liveHeap()
	keys := selectEvenly(r.keys, hotObjects)
	took, longest, err := longestCall(func(n int) error {
		_, err := r.reader.Get(keys[n%len(keys)])
		return err
	}, r.reader.AddIndex)
	check(err)
	r.metrics[IndexAdd] = took.Seconds() * 1e3
	r.metrics[IndexPause] = longest.Seconds() * 1e3
	r.metrics[IndexHeap] = float64(liveHeap()-before) / float64(len(r.keys))
}

// measureIndexReads reads by the added index.
func (r *readMeasurement) measureIndexReads() {
	var values []string
	for _, key := range selectEvenly(r.keys, coldObjects) {
		object, err := r.reader.Get(key)
		check(err)
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return // metadata has no such field
		}
		values = append(values, IndexValue(u))
	}
	r.measureHot(IndexHot, values, func(value string) error {
		_, err := r.reader.ByIndex(value)
		return err
	})
}
