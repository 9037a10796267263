package lifecycle_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestReadYourWrites: after WaitForVersion and AwaitDeletion, caches show the writes of concurrent writers. A
// cache that does not select the objects also returns.
func TestReadYourWrites(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	definition := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, definition)
	harness.RenewLease(t)
	gvr, namespace := resourceOf(definition), harness.Namespace(t)
	var informers []*dynamicinformer.Informer
	for _, options := range []dynamicinformer.ResourceOptions{
		{},
		{Namespaces: dynamicinformer.InNamespaces(namespace, "default")},
		{LabelSelector: labels.SelectorFromSet(labels.Set{"app": "none"})},
	} {
		h, err := s.factory.Acquire(gvr, options)
		if err != nil {
			t.Fatal(err)
		}
		informers = append(informers, h.Informer())
	}
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	whole, other := informers[:1], informers[2]
	client := s.admin.Resource(gvr).Namespace(namespace)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() { // ends after its writes
			name := cache.ObjectName{Namespace: namespace, Name: fmt.Sprint("w", w)}
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": gvr.GroupVersion().String(), "kind": "Widget"}}
			o.SetName(name.Name)
			for n := range 30 {
				var err error
				if n == 0 {
					o, err = client.Create(s.ctx, o, metav1.CreateOptions{})
				} else {
					o.SetAnnotations(map[string]string{"n": fmt.Sprint(n)})
					o, err = client.Update(s.ctx, o, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, i := range whole {
					if err := i.WaitForVersion(s.ctx, o.GetResourceVersion()); err != nil {
						t.Error(err)
						return
					}
					cached, found, _ := i.GetStore().GetByKey(name.String())
					if !found || cached.(*unstructured.Unstructured).GetResourceVersion() != o.
						GetResourceVersion() {
						t.Errorf("%s: the cache does not show version %s", name, o.GetResourceVersion())
					}
				}
			}
			wait := whole[0].AwaitDeletion(name, o.GetUID())
			if err := client.Delete(s.ctx, name.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
				return
			}
			if err := wait(s.ctx); err != nil {
				t.Error(err)
			}
			if _, found, _ := whole[0].GetStore().GetByKey(name.String()); found {
				t.Errorf("%s: the cache shows a deleted object", name)
			}
		})
	}
	writers.Wait()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": gvr.GroupVersion().String(), "kind": "Widget"}}
	o.SetName("other")
	o, err := client.Create(s.ctx, o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.factory.WaitForVersion(s.ctx, gvr, o.GetResourceVersion()); err != nil {
		t.Fatal(err)
	}
	t.Logf("a cache that does not select the object, and one with two watches, took %v", time.Since(began))
	wait := other.AwaitDeletion(cache.ObjectName{Namespace: namespace, Name: "other"}, o.GetUID())
	if err := client.Delete(s.ctx, "other", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := wait(s.ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("a deletion of an object that is not selected took %v", time.Since(began))
	if relists := other.Status().Relists; relists.Total() != 0 {
		t.Errorf("relists: %+v", relists)
	}
}
