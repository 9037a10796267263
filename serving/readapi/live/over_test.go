package live

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestStoppedInformer verifies that when its informer stops, a type is no longer served, and its watches end.
func TestStoppedInformer(t *testing.T) {
	s := newFixture(t, Options{})
	w := s.watch("/apis/" + demoGroup + "/v1/environments?watch=true&resourceVersion=" + s.writeEnvironment("moon-1",
		"dev").GetResourceVersion())
	s.must(s.factory.Shutdown(context.Background()))
	for { // until the watch ends
		if _, ok := w.next(); !ok {
			break
		}
	}
	s.writeEnvironment("moon-2", "dev")
	answer := get(t, s.server, "/apis/"+demoGroup+"/v1/environments/moon-2?resourceVersion=0")
	if answer.Code != 200 || answer.Header().Get(ServedHeader) != servedByCluster {
		t.Errorf("a later request = %d, served by the %s, want 200 by the cluster", answer.Code,
			answer.Header().Get(ServedHeader))
	}
	if err := s.server.WaitForSync(t.Context(), environments.GroupResource()); !errors.Is(err,
		dynamicinformer.ErrStopped) {
		t.Errorf("WaitForSync() of a stopped informer = %v, want ErrStopped", err)
	}
}

// TestWaitingEnds verifies that WaitForSync fails if its type is dropped, and waits for the new informer if
// it is replaced.
func TestWaitingEnds(t *testing.T) {
	s := newFixture(t, Options{})
	absent := schema.GroupVersionResource{Group: demoGroup, Version: "v1", Resource: "absents"}
	informer, err := s.factory.ForResource(absent)
	s.must(err)
	s.must(s.server.AddType(informer))
	done := make(chan error, 1)
	wait := func(gvr schema.GroupVersionResource) {
		started := make(chan struct{})
		go func() { // ends with the next step
			close(started)
			done <- s.server.WaitForSync(context.Background(), gvr.GroupResource())
		}()
		<-started
	}
	wait(absent)
	s.server.RemoveType(absent.GroupResource())
	if err := <-done; err == nil {
		t.Error("WaitForSync() of a dropped type succeeded, want an error")
	}
	workloadsInformer, err := s.factory.ForResource(workloads)
	s.must(err)
	later := workloads.GroupResource().WithVersion("v0") // this version does not exist
	informer, err = s.factory.ForResource(later)
	s.must(err)
	s.must(s.server.AddType(informer))
	wait(workloads)
	s.must(s.server.AddType(workloadsInformer))
	s.must(<-done)
}
