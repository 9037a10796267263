package informer

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

func packedNamed(t *testing.T, name, version, uid string) *packed.Object {
	t.Helper()
	o, err := packed.NewPacker(nil).Pack(fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"A","metadata":{"name":%q,"resourceVersion":%q,"uid":%q}}`,
		name, version, uid))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestItemsHaveTheirKeys checks that items returns each item with its key. Keys are stored separately only if
// an item is not a packed object, which has its key.
func TestItemsHaveTheirKeys(t *testing.T) {
	own := []Item{packedNamed(t, "a", "1", ""), packedNamed(t, "b", "1", "")}
	for _, others := range [][]Item{nil, {packedNamed(t, "x", "1", "")}, {"text"},
		{"text", packedNamed(t, "x", "1", ""), nil}} {
		var want []store.KeyedItem
		all := &items{}
		add := func(key string, item Item) {
			all.add(key, item)
			want = append(want, store.KeyedItem{Key: key, Item: item})
		}
		for _, item := range own {
			add(item.(*packed.Object).Key(), item)
		}
		for n, item := range others {
			add(fmt.Sprint("other-", n), item)
		}
		for n := range want {
			if got := all.itemWithKey(n); got != want[n] {
				t.Errorf("item %d is %v, want %v", n, got, want[n])
			}
		}
		if (all.keys == nil) != (others == nil) {
			t.Errorf("items() stored the separate keys %q", all.keys)
		}
	}
}

// TestListChangesAreNotifiedOneByOne checks the notifications of the changes of a list, and their count.
func TestListChangesAreNotifiedOneByOne(t *testing.T) {
	old, same, next, other := packedNamed(t, "a", "1", "u"), packedNamed(t, "a", "1", "u"), packedNamed(t,
		"a", "2", "u"), packedNamed(t, "a", "3", "v")
	changes := changeSlice{{Key: "a", Old: old}, {Key: "a", New: next}, {Key: "a", Old: old, New: next},
		{Key: "a", Old: old, New: same}, {Key: "a", Old: next, New: other}, {Key: "a", Old: same, New: same}}
	for _, c := range []struct {
		listing listChanges
		resyncs bool
		want    []notificationKind
	}{
		{listChanges{}, true, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindUpdate, kindLostDeletion, kindAdd, kindUpdate}},
		{listChanges{}, false, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindLostDeletion, kindAdd}},
		{listChanges{firstOfIncarnation: true}, false, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindUpdate, kindLostDeletion, kindAdd, kindUpdate}},
		{listChanges{handlersLackOld: true, initial: true}, true,
			[]notificationKind{kindAdd, kindAdd, kindAdd, kindAdd, kindAdd}},
	} {
		c.listing.changes = changes
		var counts Events
		all, resyncs := c.listing.countEvents(&counts)
		remaining := all
		if !c.resyncs {
			remaining -= resyncs
		}
		n := newList(c.listing, remaining, c.resyncs)
		if n.eventCount() != len(c.want) {
			t.Errorf("%+v: there are %d notifications, want %d", c.listing, n.eventCount(), len(c.want))
			continue
		}
		var got []notificationKind
		for more := true; more; {
			var one notification
			one, more = n.next()
			got = append(got, one.kind)
			if one.kind == kindAdd && one.initial != c.listing.initial {
				t.Errorf("%+v: an addition has initial = %v", c.listing, one.initial)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: notifications (-want +got):\n%s", c.listing, diff)
		}
		if adds := int64(len(slices.DeleteFunc(got,
			func(k notificationKind) bool { return k != kindAdd }))); counts.Adds != adds {
			t.Errorf("%+v: %d additions are counted, want %d", c.listing, counts.Adds, adds)
		}
	}
}
