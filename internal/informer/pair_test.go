package informer

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// objectWithSpec returns an object with a spec and a status.
func objectWithSpec(name string, version int, phase string) *unstructured.Unstructured {
	u := object(name, version)
	u.Object["spec"] = map[string]any{"class": "standard", "hosts": []any{"first.example.com",
		"second.example.com"}}
	u.Object["status"] = map[string]any{"phase": phase}
	return u
}

// receivedObject returns a packed object that has not been decoded.
func (f *feed) receivedObject(u *unstructured.Unstructured) *packed.Object {
	f.Helper()
	text, err := u.MarshalJSON()
	f.ok(err)
	o, err := f.store.Format().Packer().Pack(text)
	f.ok(err)
	return o
}

// TestUpdatesShareUnchangedParts verifies that the two objects of an update share equal fields.
func TestUpdatesShareUnchangedParts(t *testing.T) {
	f := newIdleFeed(t, Options{Format: store.NewPacked(nil, nil)})
	type update struct{ old, new *unstructured.Unstructured }
	var seen []update
	_, err := f.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, new any) {
		seen = append(seen, update{old.(*unstructured.Unstructured), new.(*unstructured.Unstructured)})
	}})
	f.ok(err)
	f.startIncarnation()
	first := f.receivedObject(objectWithSpec("a", 1, "Pending"))
	f.ok(f.partition.Replace([]any{first}, "1"))
	f.flush()
	for first.Decoded() != nil { // for OnAdd
		runtime.GC()
	}
	f.ok(f.partition.Add(f.receivedObject(objectWithSpec("a", 2, "Ready"))))
	f.ok(f.partition.Add(f.receivedObject(objectWithSpec("a", 3, "Ready"))))
	f.flush()
	want := []update{
		{objectWithSpec("a", 1, "Pending"), objectWithSpec("a", 2, "Ready")},
		{objectWithSpec("a", 2, "Ready"), objectWithSpec("a", 3, "Ready")},
	}
	if diff := cmp.Diff(want, seen, cmp.AllowUnexported(update{})); diff != "" {
		t.Fatalf("updates (-want +got):\n%s", diff)
	}
	if addressOf(seen[0].old, "spec") != addressOf(seen[0].new, "spec") ||
		addressOf(seen[0].old, "status") == addressOf(seen[0].new, "status") {
		t.Error("the objects of the first update must share the spec and not the status")
	}
	if seen[0].new != seen[1].old {
		t.Error("the new object of an update was decoded again as the old object of the next one")
	}
	if addressOf(seen[1].old, "spec") == addressOf(seen[1].new, "spec") {
		t.Error("the spec is shared with a changed copy, so that a handler's change would be kept")
	}
	runtime.KeepAlive(seen)
}

func addressOf(u *unstructured.Unstructured, field string) uintptr {
	return reflect.ValueOf(u.Object[field]).Pointer()
}

// undecodedHandler receives items in place of decoded objects.
type undecodedHandler struct {
	cache.ResourceEventHandlerFuncs
}

func (undecodedHandler) TakesUndecoded() {}

func (undecodedHandler) CoalescesEvents() bool { return false }

// TestNoDecodingWithoutReaders verifies that objects are not decoded for events that handlers ignore or
// receive as items.
func TestNoDecodingWithoutReaders(t *testing.T) {
	calls := map[string]int{}
	count := func(name string) func(any) {
		return func(any) { calls[name]++ }
	}
	countItems := func(obj any) {
		if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = lost.Obj
		}
		if _, ok := obj.(*packed.Object); ok {
			calls["items"]++
		}
	}
	for _, test := range []struct {
		name    string
		handler cache.ResourceEventHandler
		decoded int64
		calls   int
	}{
		{"nothing", cache.ResourceEventHandlerFuncs{}, 0, 0},
		{"nothing in detail", cache.ResourceEventHandlerDetailedFuncs{}, 0, 0},
		{"additions", cache.ResourceEventHandlerFuncs{AddFunc: count("additions")}, 2, 2},
		{"additions in detail", cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(any,
			bool) {
			calls["additions in detail"]++
		}}, 2, 2},
		{"updates", cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { calls["updates"]++ }}, 2, 1},
		{"deletions", cache.ResourceEventHandlerFuncs{DeleteFunc: count("deletions")}, 2, 2},
		{"items", undecodedHandler{cache.ResourceEventHandlerFuncs{AddFunc: countItems,
			UpdateFunc: func(_, obj any) { countItems(obj) }, DeleteFunc: countItems}}, 0, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newIdleFeed(t, Options{Format: store.NewPacked(nil, nil)})
			_, err := f.AddEventHandler(test.handler)
			f.ok(err)
			f.startIncarnation()
			f.ok(f.partition.Replace([]any{f.receivedObject(objectWithSpec("a", 1, "Pending")),
				f.receivedObject(objectWithSpec("b", 2, "Pending"))}, "2"))
			f.ok(f.partition.Add(f.receivedObject(objectWithSpec("a", 3, "Ready"))))
			f.ok(f.partition.Delete(f.receivedObject(objectWithSpec("a", 4, "Ready"))))
			f.ok(f.partition.Replace(nil, "5")) // the deletion of b was missed
			f.flush()
			hits, misses := f.store.Decodes()
			if calls[test.name] != test.calls || hits+misses != test.decoded {
				t.Errorf("%d handler calls and %d decoded objects, want %d and %d", calls[test.name],
					hits+misses, test.calls, test.decoded)
			}
		})
	}
}
