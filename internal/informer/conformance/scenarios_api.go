package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

func byValue(obj any) ([]string, error) {
	return []string{value(obj.(*unstructured.Unstructured))}, nil
}

func byLetter(obj any) ([]string, error) {
	return strings.Split(value(obj.(*unstructured.Unstructured)), ""), nil
}

func indexers(s *Stage) {
	s.Put("a", "x")
	s.Put("b", "xy")
	s.Start()
	x := s.Informer.GetIndexer()
	s.Note("clash: %v", s.Informer.AddIndexers(cache.Indexers{cache.NamespaceIndex: byValue}) != nil)
	s.must(s.Informer.AddIndexers(cache.Indexers{"value": byValue, "letter": byLetter}))
	s.Put("c", "y")
	s.Put("a", "xx")
	s.Put("d", "")
	s.Settle()
	s.Delete("d")
	s.Settle()
	for _, name := range []string{"value", "letter", "unknown"} {
		values := slices.DeleteFunc(x.ListIndexFuncValues(name), isNumber)
		slices.Sort(values)
		s.Note("values of %s: %q", name, values)
		for _, v := range []string{"x", "y", "xy", "none"} {
			keys, err := x.IndexKeys(name, v)
			objects, _ := x.ByIndex(name, v)
			s.Note("%s=%s: %v, %d objects, error %v", name, v, withoutNamespaces(keys), len(objects), err)
		}
		like, err := x.Index(name, configMap("z", "yx"))
		s.Note("like yx by %s: %d, error %v", name, len(like), err)
	}
	s.Note("indexers: %v", slices.Sorted(maps.Keys(x.GetIndexers())))
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// withoutNamespaces removes the namespaces, which differ between stages.
func withoutNamespaces(keys []string) []string {
	var names []string
	for _, key := range keys {
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		names = append(names, name)
	}
	return names
}

// resyncPeriods checks the effective resync periods: whether each handler is resynced together with another
// one.
func resyncPeriods(s *Stage) {
	s.Put("a", "1")
	s.Make(time.Hour)
	short, hour := 10*time.Millisecond, time.Hour
	// This period is raised to a second, and becomes the check period of the informer.
	raised, _ := s.HandleWith(cache.HandlerOptions{ResyncPeriod: &short})
	slow, _ := s.HandleWith(cache.HandlerOptions{ResyncPeriod: &hour})
	s.Run()
	s.Settle()
	late, _ := s.HandleWith(cache.HandlerOptions{ResyncPeriod: &short})
	resynced := func(traces map[string][]string, _ int) bool {
		return slices.Contains(traces["a"], "resync 1")
	}
	s.must(raised.await(s.ctx, resynced))
	s.must(late.await(s.ctx, resynced))
	s.Settle()
	s.NoteTrace("raised", raised)
	s.NoteTrace("slow", slow)
	s.NoteTrace("late", late)
}

func refusals(s *Stage) {
	s.Start()
	s.Note("transform: %v", s.Informer.SetTransform(markTransformed))
	s.Note("watch error handler: %v", s.Informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}))
	s.Note("watch error handler: %v",
		s.Informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
	s.Note("foreign handle: %v", s.Informer.RemoveEventHandler(nil) != nil)
	s.Note("stopped: %v", s.Informer.IsStopped())
	again := make(chan struct{})
	go func() { // ends at once, because the informer runs already
		defer close(again)
		s.Informer.Run(make(chan struct{}))
	}()
	<-again
	version := s.Informer.LastSyncResourceVersion()
	s.Await("the informer to be synced", s.Informer.HasSynced) // client-go's can be stopped before
	s.Stop()
	s.Note("stopped: %v", s.Informer.IsStopped())
	_, err := s.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{})
	s.Note("handler: %v", err)
	s.Note("indexers: %v", s.Informer.AddIndexers(cache.Indexers{"x": byValue}))
	s.Note("transform: %v", s.Informer.SetTransform(nil))
	s.Note("synced: %v, controller: %v", s.Informer.HasSynced(), s.Informer.GetController().HasSynced())
	s.Note("version: %v", version == s.Informer.LastSyncResourceVersion() &&
		version == s.Informer.GetController().LastSyncResourceVersion())
}

// storeWrites writes directly to the store, as tests of listers do.
func storeWrites(s *Stage) {
	s.Put("a", "1")
	r := s.Start()
	store := s.Informer.GetStore()
	written := configMap("own", "1")
	s.must(store.Add(written))
	written = configMap("own", "2")
	s.must(store.Update(written))
	found, exists, err := store.Get(written)
	s.Note("get: %v %v %v", exists, err, value(found.(*unstructured.Unstructured)))
	_, exists, err = store.GetByKey("nothing")
	s.Note("nothing: %v %v", exists, err)
	s.NoteStore()
	s.must(store.Delete(written))
	_, _, err = store.Get("no object")
	s.Note("no object: %v %v %v %v", err, store.Add("no object"), store.Delete("no object"), store.Resync())
	s.Settle()
	s.NoteTrace("", r)
	keys := store.ListKeys()
	slices.Sort(keys)
	s.Note("keys: %v", withoutNamespaces(keys))
	s.must(store.Replace([]any{configMap("only", "1")}, "7"))
	s.NoteStore()
	s.Note("version: %s", store.LastStoreSyncResourceVersion())
}
