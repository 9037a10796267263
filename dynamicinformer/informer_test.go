package dynamicinformer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

func namesOf(objects []runtime.Object) map[string]bool {
	all := map[string]bool{}
	for _, obj := range objects {
		u := obj.(*unstructured.Unstructured)
		all[u.GetNamespace()+"/"+u.GetName()] = true
	}
	return all
}

func TestLister(t *testing.T) {
	server := newServer(t)
	a, b, c := widget("web", "a"), widget("web", "b"), widget("db", "c")
	b.SetLabels(map[string]string{"tier": "front"})
	c.SetLabels(map[string]string{"tier": "front"})
	server.Create(t, widgets, a, b, c)
	lister := startSynced(t, newFactory(t, server, Options{})).Lister()

	front := labels.SelectorFromSet(labels.Set{"tier": "front"})
	tests := map[string]struct {
		list func(labels.Selector) ([]runtime.Object, error)
		by   labels.Selector
		want map[string]bool
	}{
		"all": {lister.List, labels.Everything(), map[string]bool{"web/a": true, "web/b": true,
			"db/c": true}},
		"by label": {lister.List, front, map[string]bool{"web/b": true, "db/c": true}},
		"namespace": {lister.ByNamespace("web").List, labels.Everything(),
			map[string]bool{"web/a": true, "web/b": true}},
		"namespace by label": {lister.ByNamespace("web").List, front, map[string]bool{"web/b": true}},
		"empty namespace":    {lister.ByNamespace("none").List, labels.Everything(), map[string]bool{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := tt.list(tt.by)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, namesOf(objects)); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
	if obj, err := lister.ByNamespace("db").Get("c"); err != nil ||
		obj.(*unstructured.Unstructured).GetName() != "c" {
		t.Errorf("Get() = %v, %v, want c", obj, err)
	}
	if obj, err := lister.Get("web/a"); err != nil || obj.(*unstructured.Unstructured).GetName() != "a" {
		t.Errorf("Get() by key = %v, %v, want a", obj, err)
	}
	if _, err := lister.ByNamespace("web").Get("c"); !apierrors.IsNotFound(err) ||
		!strings.Contains(err.Error(), "widgets.example.com") {
		t.Errorf("Get() of a missing object = %v, want NotFound with the resource", err)
	}
	if _, err := lister.Get("c"); !apierrors.IsNotFound(err) {
		t.Errorf("Get() without the namespace = %v, want NotFound", err)
	}
}

func TestStripManagedFields(t *testing.T) {
	managed := widget("web", "a")
	managed.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "someone"}})
	server := newServer(t)
	server.Create(t, widgets, managed)
	for name, tt := range map[string]struct {
		transform cache.TransformFunc
		want      int
	}{"kept": {nil, 1}, "stripped": {StripManagedFields, 0}} {
		t.Run(name, func(t *testing.T) {
			options := Options{Defaults: ResourceOptions{Transform: tt.transform}}
			i := startSynced(t, newFactory(t, server, options))
			obj, err := i.Lister().ByNamespace("web").Get("a")
			if err != nil {
				t.Fatal(err)
			}
			if got := len(obj.(*unstructured.Unstructured).GetManagedFields()); got != tt.want {
				t.Errorf("the cached object has %d managed fields, want %d", got, tt.want)
			}
		})
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "web/a", Obj: managed}
	for _, other := range []any{tombstone, "text", nil, 1} {
		if got, err := StripManagedFields(other); err != nil || !cmp.Equal(got, other) {
			t.Errorf("StripManagedFields(%v) = %v, %v, want the argument", other, got, err)
		}
	}
}

// TestRunWithStopChannel verifies that an informer can run without the factory, like client-go's.
func TestRunWithStopChannel(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	own := mustInformer(t, f, widgets)
	var i cache.SharedIndexInformer = own.Informer()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() { // ended by stop
		defer close(ended)
		i.Run(stop)
	}()
	if !cache.WaitForCacheSync(longContext(t).Done(), i.HasSynced) {
		t.Fatal("timed out waiting for the sync")
	}
	if err := f.WaitForSync(longContext(t), widgets); err != nil {
		t.Error(err)
	}
	close(stop)
	<-ended
	if s := own.Status(); s.State != status.Stopped || !i.IsStopped() {
		t.Errorf("Status() = %+v, want Stopped", s)
	}
	if mustInformer(t, f, widgets) == own {
		t.Error("ForResource returned a stopped informer")
	}
}
