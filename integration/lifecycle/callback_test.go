package lifecycle_test

import (
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestCallbacksIntoFactory: a handler may ask the factory for anything, even wait for another type that it
// has just asked for.
func TestCallbacksIntoFactory(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	group := harness.Group(t)
	widgets, gadgets := harness.NewCRD(group, "Widget"), harness.NewCRD(group, "Gadget")
	harness.InstallCRDs(t, widgets, gadgets)
	s.create(widgets, "a")
	s.create(gadgets, "b")
	i, err := s.factory.ForResource(resourceOf(widgets))
	if err != nil {
		t.Fatal(err)
	}
	added, deleted := make(chan error, 1), make(chan []status.Status, 1)
	j := newJournal(s)
	_, err = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			other, err := s.factory.ForResource(resourceOf(gadgets))
			if err == nil {
				_, err = other.AddEventHandler(j)
			}
			if err == nil {
				err = s.factory.Start(s.ctx)
			}
			if err == nil {
				_, err = s.factory.WaitForSync(s.ctx, resourceOf(gadgets))
			}
			added <- err
		},
		DeleteFunc: func(any) { deleted <- s.factory.Status() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.factory.Start(s.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	j.expect("add b")
	s.uninstall(widgets)
	if all := <-deleted; len(all) != 2 {
		t.Errorf("from inside, the status is %+v, want two types", all)
	}
	s.await(i, status.Pending, status.ReasonNotInstalled)
}
