package dynamicinformer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// largeObjects and largeBody are the number and size of the objects in TestKeysOwnTheirMemory, 40 MB in
// total.
const (
	largeObjects = 2000
	largeBody    = 20 << 10
)

// large returns many large objects. Half of them have no namespace, so their keys are their names.
func large() []any {
	body := strings.Repeat("x", largeBody)
	all := make([]any, largeObjects)
	for n := range all {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1",
			"kind": "Widget", "spec": body}}
		u.SetName(fmt.Sprint("w", n))
		u.SetUID("u")
		u.SetResourceVersion("7")
		u.SetLabels(map[string]string{"color": fmt.Sprint("red", n)})
		if n%2 == 0 {
			u.SetNamespace("web")
		}
		all[n] = u
	}
	return all
}

// heap returns the memory in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestKeysOwnTheirMemory retains keys and metadata that reads returned, and deletes the objects. The
// memory of the objects must be freed.
func TestKeysOwnTheirMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	reads := map[string]func(t *testing.T, i *Informer) any{
		"ListKeys": func(_ *testing.T, i *Informer) any { return i.GetIndexer().ListKeys() },
		"IndexKeys": func(t *testing.T, i *Informer) any {
			var all [][]string
			for _, namespace := range i.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
				keys, err := i.GetIndexer().IndexKeys(cache.NamespaceIndex, namespace)
				must(t, err)
				all = append(all, keys)
			}
			return all
		},
		"Snapshot.Keys": func(_ *testing.T, i *Informer) any { return i.Snapshot().Keys() },
		"Snapshot.KeysByIndex": func(t *testing.T, i *Informer) any {
			keys, err := i.Snapshot().KeysByIndex("a", "a")
			must(t, err)
			return keys
		},
		"Snapshot.All": func(_ *testing.T, i *Informer) any {
			var all []string
			for key := range i.Snapshot().All() {
				all = append(all, key)
			}
			return all
		},
		"Snapshot.AllJSON": func(t *testing.T, i *Informer) any {
			var all []string
			must(t, i.Snapshot().AllJSON(func(key string, _ []byte) error {
				all = append(all, key)
				return nil
			}))
			return all
		},
		"metadata": func(t *testing.T, i *Informer) any {
			var all []any
			for _, object := range i.Snapshot().AllStored() {
				m, err := meta.Accessor(object)
				must(t, err)
				key, err := cache.MetaNamespaceKeyFunc(object)
				must(t, err)
				all = append(all, m.GetName(), m.GetNamespace(), m.GetUID(), m.GetResourceVersion(),
					m.GetLabels(), key)
			}
			return all
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			i := newStoredInformer(t, Storage{})
			must(t, i.GetIndexer().Replace(large(), "7"))
			full := heap()
			result := read(t, i)
			must(t, i.GetIndexer().Replace(nil, "8"))
			if freed, minimum := full-heap(), int64(largeObjects*largeBody*9/10); freed < minimum {
				t.Errorf("%d bytes were freed, want at least %d", freed, minimum)
			}
			runtime.KeepAlive(result)
			runtime.KeepAlive(i)
		})
	}
}
