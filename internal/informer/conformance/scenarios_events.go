package conformance

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func initialList(s *Stage) {
	s.Put("a", "1")
	s.Put("b", "1")
	s.Make(0)
	r, handle := s.HandleWith(cache.HandlerOptions{})
	s.Note("before: %v %v %q", s.Informer.HasSynced(), handle.HasSynced(),
		s.Informer.LastSyncResourceVersion())
	s.Run()
	s.awaitSync(s.Informer, handle)
	s.NoteTrace("", r)
	s.NoteStore()
	s.Note("after: %v %v", s.Informer.HasSynced(), handle.HasSynced())
	s.Await("a resource version", func() bool { return s.Informer.LastSyncResourceVersion() != "" })
}

func recreatedWhileAway(s *Stage) {
	s.Put("a", "1")
	r := s.Start()
	release := s.Hold()
	s.Faults.ExpireWatches()
	s.Delete("a")
	s.Put("a", "2")
	release()
	s.conclude(r)
}

func lateHandler(s *Stage) {
	s.Put("a", "1")
	first := s.Start()
	s.Put("b", "1")
	s.Settle()
	second, handle := s.HandleWith(cache.HandlerOptions{})
	s.awaitSync(handle)
	s.Put("b", "2")
	s.Put("c", "1")
	s.Settle()
	s.NoteTrace("first", first)
	s.NoteTrace("second", second)
}

// twoHandlers adds, updates, deletes and re-creates objects with two handlers.
func twoHandlers(s *Stage) {
	s.Put("a", "1")
	s.Make(0)
	first, second := s.Handle(), s.Handle()
	s.Run()
	s.Settle()
	s.Put("b", "1")
	s.Put("b", "2")
	s.Put("a", "2")
	s.Delete("a")
	s.Put("a", "3")
	s.Settle()
	s.NoteTrace("first", first)
	s.NoteTrace("second", second)
	s.NoteStore()
}

func removedHandler(s *Stage) {
	s.Put("a", "1")
	stays := s.Start()
	goes, handle := s.HandleWith(cache.HandlerOptions{})
	s.Settle()
	// client-go's handler stays unsynced if it is removed before
	s.Await("the handler to be synced", handle.HasSynced)
	s.must(s.Informer.RemoveEventHandler(handle))
	s.must(s.Informer.RemoveEventHandler(handle))
	s.shutDown(handle)
	s.Forget(goes)
	s.Put("a", "2")
	s.Settle()
	s.NoteTrace("stays", stays)
	s.NoteTrace("goes", goes)
	s.Note("synced: %v", handle.HasSynced())
}

// shutDown removes a handler and waits for its last call. Handlers have the channel since client-go 0.37.
func (s *Stage) shutDown(handle cache.ResourceEventHandlerRegistration) {
	s.must(s.Informer.RemoveEventHandler(handle))
	if h, ok := handle.(interface{ ShutdownChan() <-chan struct{} }); ok {
		<-h.ShutdownChan()
	}
}

func removedFromInside(s *Stage) {
	s.Put("a", "1")
	stays := s.Start()
	goes, handle := s.HandleWith(cache.HandlerOptions{})
	s.Settle()
	removed := make(chan struct{})
	goes.intercept = func() {
		if err := s.Informer.RemoveEventHandler(handle); err != nil {
			s.t.Error(err)
		}
		close(removed)
	}
	s.Forget(goes)
	s.Put("a", "2")
	<-removed // client-go can deliver an event that is queued during the removal
	s.Put("a", "3")
	s.Settle()
	s.shutDown(handle)
	s.NoteTrace("stays", stays)
	s.NoteTrace("goes", goes)
}

// transform marks objects of a list, of a watch, and of another list.
func transform(s *Stage) {
	s.Put("a", "1")
	s.Put("b", "1")
	s.Make(0)
	s.must(s.Informer.SetTransform(markTransformed))
	r := s.Handle()
	s.Run()
	s.Settle()
	s.Put("a", "2")
	s.Put("c", "1")
	s.Delete("c")
	s.Settle()
	release := s.Hold()
	s.Faults.ExpireWatches()
	s.Put("a", "3")
	s.Delete("b")
	release()
	s.conclude(r)
}

// markTransformed counts the calls of the transform: two for an object of a watch-list, one otherwise. An
// idempotent transform would not reveal a second call.
func markTransformed(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected %T", obj)
	}
	u = u.DeepCopy()
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["transformed"] += "x"
	u.SetAnnotations(annotations)
	return u, nil
}

func resync(s *Stage) {
	s.Put("a", "1")
	s.Make(time.Second)
	never := time.Duration(0)
	frequent, _ := s.HandleWith(cache.HandlerOptions{})
	rarely, _ := s.HandleWith(cache.HandlerOptions{ResyncPeriod: &never})
	s.Run()
	s.Settle()
	late, _ := s.HandleWith(cache.HandlerOptions{})
	resynced := func(traces map[string][]string, _ int) bool {
		return len(traces["a"]) > 0 && traces["a"][len(traces["a"])-1] == "resync 1"
	}
	s.must(frequent.await(s.ctx, resynced))
	s.must(late.await(s.ctx, resynced))
	s.Put("a", "2")
	s.Settle()
	s.must(frequent.await(s.ctx, func(traces map[string][]string, _ int) bool {
		return traces["a"][len(traces["a"])-1] == "resync 2"
	}))
	s.NoteTrace("often", frequent)
	s.NoteTrace("rarely", rarely)
}
