package informer

import (
	"fmt"
	"testing"

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
