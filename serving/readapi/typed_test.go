package readapi_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

// newBuiltInStorage returns a storage with three built-in types and a few objects of them.
func newBuiltInStorage(t testing.TB) *apiserver.Storage {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
	for plural, kind := range map[string]string{"configmaps": "ConfigMap", "pods": "Pod", "nodes": "Node"} {
		typ := readapi.Type{Namespaced: plural != "nodes",
			Versions: []readapi.Version{{Name: "v1", Subresources: []string{"status"}}}}
		typ.Names.Plural, typ.Names.Kind = plural, kind
		if err := storage.SetType(typ); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, storage, configMap("a", "1"))
	apply(t, storage, configMap("b", "1"))
	apply(t, storage, "{apiVersion: v1, kind: Node, metadata: {name: one}, spec: {podCIDRs: [10.0.0.0/24]}}")
	apply(t, storage, `
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, labels: {app: p}}
spec:
  nodeName: one
  containers: [{name: c, image: i, resources: {limits: {cpu: 500m, memory: 1Gi}}, ports: [{containerPort: 80}]}]
status: {phase: Running, startTime: 2026-01-02T03:04:05Z, conditions: [{type: Ready, status: "True"}]}
`)
	return storage
}

func configMap(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {value: '%s'}}", name, value)
}

var configMaps = corev1.Resource("configmaps")

// recordEvents runs an informer and returns a journal of its events.
func recordEvents(t *testing.T, informer cache.SharedIndexInformer) *journal {
	t.Helper()
	j := &journal{changed: make(chan struct{})}
	if _, err := informer.AddEventHandler(j.handler()); err != nil {
		t.Fatal(err)
	}
	runInformer(t, informer)
	return j
}

// runInformer runs an informer until the test ends, and waits for its first list.
func runInformer(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() { informer.Run(stop) }) // ends with stop
	t.Cleanup(func() { close(stop); wg.Wait() })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("timed out waiting for the sync")
	}
}

// TestTypedPager verifies that the pages of a typed list hold the state at one version, despite changes
// between pages.
func TestTypedPager(t *testing.T) {
	s := newBuiltInStorage(t)
	client, err := kubernetes.NewForConfig(readapi.Config(handlerOf(s)))
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := client.CoreV1().ConfigMaps("default").List(ctx, options)
		pages++
		s.Delete(configMaps, "default", "b")
		apply(t, s, configMap("c", fmt.Sprint(pages)))
		return list, err
	})
	p.PageSize = 1
	var names []string
	if err := p.EachListItem(t.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
		names = append(names, obj.(*corev1.ConfigMap).Name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(names, []string{"a", "b"}) || pages != 2 {
		t.Errorf("the pager returned %v on %d pages, want a and b on 2", names, pages)
	}
}
