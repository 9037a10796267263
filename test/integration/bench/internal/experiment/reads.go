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
	cache, err := newCache(task, NoHandler, nil)
	if err != nil {
		return Outcome{}, err
	}
	reader, ok := cache.(Reader)
	if !ok {
		return Outcome{}, fmt.Errorf("%s cannot be read", task.Subject)
	}
	if err := reader.Sync(ctx); err != nil {
		return Outcome{}, err
	}
	if err := awaitBackgroundWork(ctx, cache); err != nil {
		return Outcome{}, err
	}
	r := &readMeasurement{reader: reader, budget: task.Budget, metrics: map[string]float64{},
		returnsCopies: task.Subject == ControllerRuntime}
	r.keys = reader.Keys()
	slices.Sort(r.keys) // equal for all subjects
	for _, step := range []func() error{r.measureGets, r.measureLists, r.measureNamespace, r.measureIndexAdd,
		r.measureIndexReads} {
		if err := step(); err != nil {
			return Outcome{}, err
		}
	}
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
func coldGet(r Reader, keys []string) (float64, error) {
	return averageColdCost(len(keys), func(n int) error {
		_, err := r.Get(keys[n])
		return err
	})
}

func (r *readMeasurement) measureGets() error {
	get := func(key string) error {
		_, err := r.reader.Get(key)
		return err
	}
	names := selectEvenly(r.keys, coldObjects)
	cold, err := coldGet(r.reader, names)
	if err != nil {
		return err
	}
	r.metrics[GetCold] = cold
	if err := r.measureHot(GetHot, r.keys, get); err != nil || r.returnsCopies {
		return err
	}
	r.metrics[GetCopy], err = averageColdCost(len(names), func(n int) error {
		object, err := r.reader.Get(names[n])
		if o, ok := object.(k8sruntime.Object); ok {
			o.DeepCopyObject()
		}
		return err
	})
	return err
}

// measureHot measures reads that repeat a few of the names.
func (r *readMeasurement) measureHot(metric string, names []string, read func(string) error) (err error) {
	names = selectEvenly(names, hotObjects)
	r.metrics[metric], err = averageCost(r.budget, func(n int) error { return read(names[n%len(names)]) })
	return err
}

func (r *readMeasurement) measureLists() error {
	return r.measureMany(ListHot, r.reader.ListAll, len(r.keys))
}

// measureNamespace reads all objects of the first namespace.
func (r *readMeasurement) measureNamespace() error {
	namespace, _, _ := strings.Cut(r.keys[0], "/")
	want := 0
	for _, key := range r.keys {
		if strings.HasPrefix(key, namespace+"/") {
			want++
		}
	}
	return r.measureMany(NamespaceHot, func() (int, error) { return r.reader.ListNamespace(namespace) }, want)
}

// measureMany measures repeated reads of many objects.
func (r *readMeasurement) measureMany(metric string, list func() (int, error), want int) error {
	cost, err := averageCost(r.budget, func(int) error {
		got, err := list()
		if err == nil && got != want {
			err = fmt.Errorf("%d objects were listed, want %d", got, want)
		}
		return err
	})
	r.metrics[metric] = cost / float64(want)
	return err
}

// measureIndexAdd adds an index while another goroutine reads.
func (r *readMeasurement) measureIndexAdd() error {
	before := liveHeap()
	keys := selectEvenly(r.keys, hotObjects)
	took, longest, err := longestCall(
		func(n int) error {
			_, err := r.reader.Get(keys[n%len(keys)])
			return err
		},
		r.reader.AddIndex)
	if err != nil {
		return err
	}
	r.metrics[IndexAdd] = took.Seconds() * 1e3
	r.metrics[IndexPause] = longest.Seconds() * 1e3
	r.metrics[IndexHeap] = float64(liveHeap()-before) / float64(len(r.keys))
	return nil
}

// measureIndexReads reads by the added index.
func (r *readMeasurement) measureIndexReads() error {
	var values []string
	for _, key := range selectEvenly(r.keys, coldObjects) {
		object, err := r.reader.Get(key)
		if err != nil {
			return err
		}
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return nil // metadata has no such field
		}
		values = append(values, IndexValue(u))
	}
	return r.measureHot(IndexHot, values, func(value string) error {
		_, err := r.reader.ByIndex(value)
		return err
	})
}
