package conformance

import (
	"context"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func relistAfterGone(s *Stage) {
	for _, name := range []string{"stays", "changes", "goes"} {
		s.Put(name, "1")
	}
	r := s.Start()
	release := s.Hold()
	s.Faults.ExpireWatches()
	s.Put("changes", "2")
	s.Delete("goes")
	s.Put("comes", "1")
	release()
	s.Settle()
	late := s.Handle()
	s.Settle()
	s.NoteTrace("", r)
	s.NoteTrace("late", late)
	s.NoteStore()
}

func watchEnded(s *Stage) { watchInterrupted(s, s.Faults.EndWatches) }

func watchBroken(s *Stage) { watchInterrupted(s, s.Faults.BreakWatches) }

// watchInterrupted ends the watch while things go on; the next watch brings every event that was missed.
func watchInterrupted(s *Stage, interrupt func()) {
	s.Put("a", "1")
	r := s.Start()
	lists := s.Faults.Requests("list") + s.Faults.Requests("watch-list")
	release := s.Hold()
	interrupt()
	s.Put("a", "2")
	s.Put("b", "1")
	s.Put("a", "3")
	s.Delete("b")
	release()
	s.Settle()
	s.NoteTrace("", r)
	s.NoteStore()
	s.Note("relists: %d", s.Faults.Requests("list")+s.Faults.Requests("watch-list")-lists)
}

func bookmark(s *Stage) {
	r := s.Start()
	// Something else moves the server's version on; the informer learns it from the bookmark alone.
	other := s.newNamespace()
	s.PutIn(other, "elsewhere", "1")
	obj, err := s.direct.Resource(configMaps).Namespace(other).Get(s.ctx, "elsewhere", metav1.GetOptions{})
	s.must(err)
	s.Note("before: %v", newer(s.Informer.GetStore().LastStoreSyncResourceVersion(), obj.GetResourceVersion()))
	s.Faults.Bookmark(obj.GetResourceVersion())
	s.await("the bookmark", func() bool {
		return s.Informer.GetStore().LastStoreSyncResourceVersion() == obj.GetResourceVersion()
	})
	s.await("the reflector's version", func() bool {
		return s.Informer.LastSyncResourceVersion() == obj.GetResourceVersion()
	})
	s.Put("a", "1")
	s.Settle()
	s.NoteTrace("", r)
}

func newer(a, b string) bool {
	av, aerr := strconv.ParseUint(a, 10, 64)
	bv, berr := strconv.ParseUint(b, 10, 64)
	return aerr == nil && berr == nil && av >= bv
}

func firstRequestsFail(s *Stage) {
	s.Put("a", "1")
	s.Make(0, nil)
	r := s.Handle()
	errors := &counter{}
	s.must(s.Informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) { errors.add() }))
	s.Faults.Fail(4, http.StatusInternalServerError)
	s.Run()
	s.Settle()
	s.NoteTrace("", r)
	s.Note("watch errors: %d", errors.value())
}

func selector(s *Stage) {
	s.Put("in", "1", "side", "left")
	s.Put("out", "1", "side", "right")
	s.Put(sentinel, "0")
	s.Informer = s.new(s.ListWatch(s.namespace, "suite=conformance,side!=right"), configMap("", ""), 0, cache.Indexers{})
	r := s.Handle()
	s.Run()
	s.Settle()
	s.Put("in", "2", "side", "right")
	s.Put("out", "2", "side", "left")
	s.Put("in", "3", "side", "right")
	s.Put("out", "3", "side", "left")
	s.Settle()
	s.NoteTrace("", r)
	s.NoteStore()
}

func otherNamespaces(s *Stage) {
	other := s.newNamespace()
	s.Put("a", "here")
	s.PutIn(other, "a", "there")
	r := s.Start()
	s.PutIn(other, "b", "there")
	s.Put("b", "here")
	s.Settle()
	s.NoteTrace("", r)
	found, err := s.Informer.GetIndexer().ByIndex(cache.NamespaceIndex, other)
	s.must(err)
	s.Note("found in the other namespace: %d", len(found))
}
