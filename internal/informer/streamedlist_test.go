package informer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// scriptedLists is an InlineWatcher whose watch-lists receive events from a test. Its watches have no events.
type scriptedLists struct {
	*recordingListerWatcher
	noRequests
	events      chan watch.Event
	interrupted chan struct{}
}

func (s *scriptedLists) IsWatchListSemanticsUnSupported() bool { return false }

func (s *scriptedLists) Interrupt() {
	select {
	case s.interrupted <- struct{}{}:
	default:
	}
}

func (s *scriptedLists) WatchInline(ctx context.Context, o *metav1.ListOptions,
	take func(watch.Event) bool) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.interrupted:
			if o.SendInitialEvents == nil {
				return nil
			}
			defer s.Interrupt() // for the next watch
		case event := <-s.events:
			if !take(event) {
				return nil
			}
		}
	}
}

// list sends a watch-list: an object for each name, and with a version the bookmark.
func (s *scriptedLists) list(version int, objects map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		s.events <- watch.Event{Type: watch.Added, Object: objectWithUUID(name, objects[name])}
	}
	if version > 0 {
		end := object("end", version)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		s.events <- watch.Event{Type: watch.Bookmark, Object: end}
		synctest.Wait()
	}
}

func objectWithUUID(name string, version int) *unstructured.Unstructured {
	return object(fmt.Sprintf("%s@00000000-0000-4000-8000-%012s", name, name), version)
}

// receivedVersions has the versions of a handler's objects, and its calls that do not fit to them.
type receivedVersions struct {
	live     map[string]int
	problems []string
}

func (r *receivedVersions) set(obj any, isUpdate bool) {
	u := obj.(*unstructured.Unstructured)
	if before, known := r.live[u.GetName()]; known != isUpdate || u.GetKind() != "Thing" {
		r.problems = append(r.problems, fmt.Sprint(u.GetName(), isUpdate, known, before, u.GetKind()))
	}
	r.live[u.GetName()], _ = strconv.Atoi(u.GetResourceVersion())
}

func (r *receivedVersions) addTo(t *testing.T, i *Informer) {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { r.set(obj, false) },
		UpdateFunc: func(_, obj any) { r.set(obj, true) }, DeleteFunc: func(obj any) {
			_, name, _ := cache.SplitMetaNamespaceKey(obj.(cache.DeletedFinalStateUnknown).Key)
			delete(r.live, name)
		}})
	if err != nil {
		t.Fatal(err)
	}
}

func (r *receivedVersions) expect(t *testing.T, step string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, r.live); diff != "" || r.problems != nil {
		t.Errorf("%s: the objects (-want +got):\n%s; wrong calls: %q", step, diff, r.problems)
	}
}

// TestStreamedList verifies that a relist of a store without objects delivers them before its end. No handler
// lacks any if a handler is added meanwhile, the list fails, has changes, or has two objects with one key.
func TestStreamedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedLists{&recordingListerWatcher{seen: make(chan metav1.ListOptions, 9)}, noRequests{},
			make(chan watch.Event), make(chan struct{}, 1)}
		i := New(s, Options{Format: store.NewIdentities(nil), Indexers: cache.Indexers{}})
		first, second, third := &receivedVersions{live: map[string]int{}},
			&receivedVersions{live: map[string]int{}}, &receivedVersions{live: map[string]int{}}
		first.addTo(t, i)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { // ended by cancel
			defer close(ended)
			i.RunWithContext(ctx)
		}()
		objects := map[string]int{}
		for n := range 2*streamedPart + 9 {
			objects[strconv.Itoa(n)] = n + 1
		}
		s.list(1000, objects)
		first.expect(t, "the first list", objects)

		relist := func() { go func() { _ = i.Relist(ctx) }(); synctest.Wait() } // ended by cancel
		relist()
		objects["1"] = 1001
		s.list(0, objects)
		synctest.Wait()
		first.expect(t, "a list without an end", objects)
		second.addTo(t, i)
		s.events <- watch.Event{Type: watch.Error, Object: &metav1.Status{Code: 429}}
		delete(objects, "7")
		s.list(1002, objects)
		first.expect(t, "the list after a failure", objects)
		second.expect(t, "the list after a failure", objects)

		relist()
		delete(objects, "8")
		s.list(0, objects)
		third.addTo(t, i)
		s.list(1004, nil)
		first.expect(t, "the list during which a handler is added", objects)
		s.list(1005, objects)
		for _, r := range []*receivedVersions{first, second, third} {
			r.expect(t, "the list for a handler", objects)
		}

		relist()
		s.list(0, objects)
		s.events <- watch.Event{Type: watch.Deleted, Object: objectWithUUID("9", objects["9"])}
		delete(objects, "9")
		objects["10"] = 1006
		s.events <- watch.Event{Type: watch.Modified, Object: objectWithUUID("10", 1006)}
		s.list(1006, nil)
		third.expect(t, "events in a list", objects)

		relist()
		another := object("1@00000000-0000-4000-8000-00000000000a", 1007)
		s.items = []unstructured.Unstructured{*objectWithUUID("1", objects["1"]), *another}
		s.list(0, objects)
		s.events <- watch.Event{Type: watch.Added, Object: another}
		s.list(1008, nil)
		cancel()
		<-ended
		if len(s.seen) != 1 {
			t.Errorf("after two objects with one key, %d lists, want 1", len(s.seen))
		}
	})
}
