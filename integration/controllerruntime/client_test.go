package controllerruntime_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/controllerruntime"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/shard"
)

// consistentClient returns a client of a running cache.
func consistentClient(t testing.TB, ours controllerruntime.Options, consistent bool) client.Client {
	t.Helper()
	config := harness.Config(t)
	config.QPS = -1
	c, err := controllerruntime.New(config, cache.Options{}, ours)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }() // ended by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}
	made, err := controllerruntime.NewClient(config, client.Options{Cache: &client.CacheOptions{
		Reader: c, Unstructured: true, EnableReadYourWritesConsistency: &consistent}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// forms are empty ConfigMaps and lists in each form.
var forms = map[string]func() (client.Object, client.ObjectList){
	"typed": func() (client.Object, client.ObjectList) { return &corev1.ConfigMap{}, &corev1.ConfigMapList{} },
	"unstructured": func() (client.Object, client.ObjectList) {
		o, l := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		o.SetGroupVersionKind(configMapKind)
		l.SetGroupVersionKind(configMapKind)
		return o, l
	},
	"metadata": func() (client.Object, client.ObjectList) {
		o, l := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
		o.SetGroupVersionKind(configMapKind)
		l.SetGroupVersionKind(configMapKind)
		return o, l
	},
}

// TestReadYourWrites makes each kind of write and reads at once, in each form, while other objects change.
func TestReadYourWrites(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			namespace := harness.Namespace(t)
			c := consistentClient(t, controllerruntime.Options{}, true)
			expect := func(step, name, version string) {
				t.Helper()
				got, list := form()
				err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, got)
				if version == "" != apierrors.IsNotFound(err) || err == nil &&
					got.GetResourceVersion() != version {
					t.Errorf("%s: got version %q (%v), want %q", step, got.GetResourceVersion(), err, version)
				}
				if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
					t.Fatal(err)
				}
				found := false
				_ = meta.EachListItem(list, func(item runtime.Object) error {
					found = found || item.(client.Object).GetName() == name
					return nil
				})
				if found != (version != "") {
					t.Errorf("%s: in the list: %v", step, found)
				}
			}
			ok := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for n := range 20 {
				name := fmt.Sprint("a", n)
				whole := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
				ok(c.Create(t.Context(), whole))
				expect("create", name, whole.GetResourceVersion())
				whole.Labels = map[string]string{"a": "1"}
				ok(c.Update(t.Context(), whole))
				expect("update", name, whole.GetResourceVersion())
				patched, _ := form()
				patched.SetNamespace(namespace)
				patched.SetName(name)
				ok(c.Patch(t.Context(), patched, client.RawPatch(types.MergePatchType,
					[]byte(`{"metadata":{"labels":{"a":"2"}}}`))))
				expect("patch", name, patched.GetResourceVersion())
				applied := corev1ac.ConfigMap(name, namespace).WithLabels(map[string]string{"a": "3"})
				ok(c.Apply(t.Context(), applied, client.FieldOwner("test"), client.ForceOwnership))
				expect("apply", name, *applied.ResourceVersion)
				ok(c.Delete(t.Context(), patched))
				expect("delete", name, "")
			}
		})
	}
}

// TestReadYourWritesSharded: deleting an object of another shard does not block later lists.
func TestReadYourWritesSharded(t *testing.T) {
	assigner, err := shard.Static(0, 64, 64)
	if err != nil {
		t.Fatal(err)
	}
	s, err := controllerruntime.NewSharding(controllerruntime.ShardingOptions{Assigner: assigner,
		Key: sharding.ByUID, Objects: []client.Object{&corev1.ConfigMap{}}})
	if err != nil {
		t.Fatal(err)
	}
	namespace := harness.Namespace(t)
	harness.RenewLease(t)
	c := consistentClient(t, controllerruntime.Options{Sharding: s}, true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }() // ended by cancel
	for n := range 3 {                    // nearly always of other shards
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("a", n)}}
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var list corev1.ConfigMapList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil || len(list.Items) != 0 {
			t.Fatalf("%d objects, %v", len(list.Items), err)
		}
		t.Logf("the list took %v", time.Since(began))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkReadYourWrites measures the processor time of this process for an update with a read before and
// after, with and without consistency.
func BenchmarkReadYourWrites(b *testing.B) {
	const objects, workers = 200, 8
	for name, consistent := range map[string]bool{"consistent": true, "eventual": false} {
		b.Run(name, func(b *testing.B) {
			namespace := harness.Namespace(b)
			c := consistentClient(b, controllerruntime.Options{}, consistent)
			for n := range objects {
				if err := c.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: fmt.Sprint(n)}}); err != nil {
					b.Fatal(err)
				}
			}
			before := processorTime(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range workers {
				wg.Go(func() { // ends after b.N updates
					for n := w; n < b.N; n += workers {
						key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprint(n % objects)}
						var o corev1.ConfigMap
						err := c.Get(b.Context(), key, &o)
						for err == nil {
							o.Data = map[string]string{"n": fmt.Sprint(n)}
							if err = c.Update(b.Context(), &o); !apierrors.IsConflict(err) {
								break
							}
							err = c.Get(b.Context(), key, &o)
						}
						if err == nil {
							err = c.Get(b.Context(), key, &o)
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
