package conformance

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

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

// Lists returns the number of lists of both kinds.
func (s *Stage) Lists() int { return s.Faults.Requests("list") + s.Faults.Requests("watch-list") }

func watchEnded(s *Stage) { watchInterrupted(s, s.Faults.EndWatches) }

func watchBroken(s *Stage) { watchInterrupted(s, s.Faults.BreakWatches) }

// watchInterrupted ends the watch during changes. The next watch delivers the missed events.
func watchInterrupted(s *Stage, interrupt func()) {
	s.Put("a", "1")
	r := s.Start()
	lists := s.Lists()
	release := s.Hold()
	interrupt()
	s.Put("a", "2")
	s.Put("b", "1")
	s.Put("a", "3")
	s.Delete("b")
	release()
	s.conclude(r)
	s.Note("relists: %d", s.Lists()-lists)
}

func bookmark(s *Stage) {
	r := s.Start()
	// The server's version advances. The informer only sees that by a bookmark: this one or one of the
	// server.
	version := s.moveOn()
	s.Faults.Bookmark(version)
	s.awaitVersion(version)
	s.Put("a", "1")
	s.Settle()
	s.NoteTrace("", r)
}

// moveOn changes an object outside the informer's scope, and returns the new resource version of the server.
func (s *Stage) moveOn() string {
	s.t.Helper()
	other := s.newNamespace()
	s.PutIn(other, "elsewhere", "1")
	obj, err := s.direct.Resource(configMaps).Namespace(other).Get(s.ctx, "elsewhere", metav1.GetOptions{})
	s.must(err)
	return obj.GetResourceVersion()
}

// awaitVersion waits until the store and the reflector have reached a resource version.
func (s *Stage) awaitVersion(version string) {
	s.t.Helper()
	s.Await("the bookmark in the store", func() bool {
		return hasReached(s.Informer.GetStore().LastStoreSyncResourceVersion(), version)
	})
	s.Await("the bookmark in the reflector", func() bool {
		return hasReached(s.Informer.LastSyncResourceVersion(), version)
	})
}

func hasReached(version, target string) bool {
	is, isErr := strconv.ParseUint(version, 10, 64)
	want, wantErr := strconv.ParseUint(target, 10, 64)
	return isErr == nil && wantErr == nil && is >= want
}

// watchTimeout lets the server end watches by their timeout, with a bookmark shortly before.
func watchTimeout(s *Stage) {
	s.Put("a", "1")
	s.Faults.ShortenWatches(3)
	r := s.Start()
	lists := s.Lists()
	s.awaitVersion(s.moveOn())
	s.Put("a", "2")
	watches := s.Faults.Requests("watch")
	s.Await("two more watches", func() bool { return s.Faults.Requests("watch") >= watches+2 })
	s.Put("b", "1")
	s.Delete("a")
	s.conclude(r)
	s.Note("relists: %d", s.Lists()-lists)
}

func firstRequestsFail(s *Stage) {
	s.Put("a", "1")
	s.Make(0)
	r := s.Handle()
	var errors atomic.Int64
	s.must(s.Informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {
		errors.Add(1)
	}))
	s.Faults.Fail(4, http.StatusInternalServerError)
	s.Run()
	s.Settle()
	s.NoteTrace("", r)
	s.Note("watch errors: %d", errors.Load())
}

func selector(s *Stage) {
	s.Put("in", "1", "side", "left")
	s.Put("out", "1", "side", "right")
	s.Put(sentinel, "0")
	r := s.startWith(func(setup *Setup) { setup.LabelSelector += ",side!=right" })
	s.Put("in", "2", "side", "right")
	s.Put("out", "2", "side", "left")
	s.Put("in", "3", "side", "right")
	s.Put("out", "3", "side", "left")
	s.conclude(r)
}

func fieldSelector(s *Stage) {
	s.Put("in", "1")
	s.Put("out", "1")
	r := s.startWith(func(setup *Setup) { setup.FieldSelector = "metadata.name!=out" })
	s.Put("out", "2")
	s.Put("in", "2")
	s.Delete("out")
	s.conclude(r)
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
	s.noteFoundIn(other)
}

func allNamespaces(s *Stage) {
	other := s.newNamespace()
	s.Put("a", "here")
	s.PutIn(other, "b", "there")
	r := s.startWith(func(setup *Setup) {
		setup.Namespace, setup.LabelSelector = "", "stage="+s.namespace
		setup.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	})
	s.PutIn(other, "c", "there")
	s.Put("a", "still here")
	s.conclude(r)
	s.noteFoundIn(other)
}

func (s *Stage) noteFoundIn(namespace string) {
	found, err := s.Informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	s.must(err)
	s.Note("found in the other namespace: %d", len(found))
}
