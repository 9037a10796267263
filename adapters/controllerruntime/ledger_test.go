package controllerruntime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func colored(u *unstructured.Unstructured, color string) *unstructured.Unstructured {
	return labelled(u, map[string]string{"color": color})
}

func withColor(color string) cache.ByObject {
	return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"color": color})}
}

// ledger is a handler that checks that events are not lost, repeated or reordered. It stores the objects
// that it has received.
type ledger struct {
	t       *testing.T
	form    reflect.Type
	mu      sync.Mutex
	objects map[string]client.Object
	// gate, if not nil, blocks the handler.
	gate chan struct{}
}

func newLedger(t *testing.T, form client.Object) *ledger {
	return &ledger{t: t, form: reflect.TypeOf(form), objects: map[string]client.Object{}}
}

func (l *ledger) apply(event string, object any, isKnown bool, exists bool) {
	if l.gate != nil {
		<-l.gate
	}
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o := object.(client.Object)
	l.mu.Lock()
	defer l.mu.Unlock()
	key := client.ObjectKeyFromObject(o).String()
	before := l.objects[key]
	switch {
	case reflect.TypeOf(object) != l.form:
		l.t.Errorf("%s %s: got a %T, want the ledger's form", event, key, object)
	case (before != nil) != isKnown:
		l.t.Errorf("%s %s: the handler has the object %v, want one: %v", event, key, before, isKnown)
	case event == "update" && newestVersion(before.GetResourceVersion(), o.GetResourceVersion()) ==
		before.GetResourceVersion():
		l.t.Errorf("update %s from version %s to %s, want a newer one", key, before.GetResourceVersion(),
			o.GetResourceVersion())
	case before != nil && before.GetUID() != o.GetUID():
		l.t.Errorf("%s %s: the object has another UID", event, key)
	}
	delete(l.objects, key)
	if exists {
		l.objects[key] = o
	}
}

func (l *ledger) OnAdd(object any, _ bool) { l.apply("add", object, false, true) }
func (l *ledger) OnUpdate(_, object any)   { l.apply("update", object, true, true) }
func (l *ledger) OnDelete(object any)      { l.apply("delete", object, true, false) }

// versions returns the resource versions of the handler's objects.
func (l *ledger) versions() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return versionsOf(l.objects)
}

func versionsOf[O client.Object](objects map[string]O) map[string]string {
	versions := map[string]string{}
	for key, o := range objects {
		versions[key] = o.GetResourceVersion()
	}
	return versions
}

// storedVersions returns the resource versions of the server's ConfigMaps that accepts selects.
func storedVersions(t *testing.T, server *apitest.Server,
	accepts func(*unstructured.Unstructured) bool) map[string]string {
	t.Helper()
	list, err := server.Client(t).Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	all := map[string]*unstructured.Unstructured{}
	for k := range list.Items {
		if o := &list.Items[k]; accepts(o) {
			all[client.ObjectKeyFromObject(o).String()] = o
		}
	}
	return versionsOf(all)
}

// awaitEqual waits until got returns want.
func awaitEqual(t *testing.T, name string, want, got func() map[string]string) {
	t.Helper()
	var diff string
	for range 15000 { // five minutes
		if diff = cmp.Diff(want(), got()); diff == "" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s (-want +got):\n%s", name, diff)
}

// writeRandomly writes random ConfigMaps in three namespaces until stop is called, and then a few more.
func writeRandomly(t *testing.T, server *apitest.Server) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	written := make(chan struct{})
	for n, namespace := range []string{"web", "db", "other"} {
		resource := server.Client(t).Resource(configMaps).Namespace(namespace)
		random := rand.New(rand.NewPCG(1, uint64(n)))
		writing.Go(func() {
			// The requests do not end with ctx: the server could apply them later, and conflict with others.
			for ctx.Err() == nil {
				o := colored(configMap(namespace, fmt.Sprint("o", random.IntN(8))),
					[]string{"red", "blue", "green"}[random.IntN(3)])
				var err error
				switch now, notFound := resource.Get(t.Context(), o.GetName(), metav1.GetOptions{}); {
				case notFound != nil:
					_, err = resource.Create(t.Context(), o, metav1.CreateOptions{})
				case random.IntN(4) == 0:
					err = resource.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
				default:
					o.SetResourceVersion(now.GetResourceVersion())
					_, err = resource.Update(t.Context(), o, metav1.UpdateOptions{})
				}
				if err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
				select {
				case written <- struct{}{}:
				case <-time.After(time.Millisecond): // bounds the rate
				}
			}
		})
	}
	return func() {
		for range 20 {
			<-written
		}
		cancel()
		writing.Wait()
	}
}
