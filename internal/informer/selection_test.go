package informer

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// initialsSelection is a Selection of objects whose UIDs begin with certain letters.
type initialsSelection struct{ letters atomic.Value }

func selectInitials(letters string) *initialsSelection {
	s := &initialsSelection{}
	s.letters.Store(letters)
	return s
}

func (s *initialsSelection) Has(object any) bool {
	o, err := meta.Accessor(object)
	return err != nil || strings.Contains(s.letters.Load().(string), string(o.GetUID()[:1]))
}

// leftShardLog is an eventLog that implements LeftShardHandler.
type leftShardLog struct{ eventLog }

func (l *leftShardLog) OnLeftShard(obj any) { l.write("left %s", nameAndVersion(obj)) }

// addSelections starts a partition for each selection, and adds a LeftShardHandler.
func (f *feed) addSelections(selections ...Selection) (*leftShardLog, []*partition) {
	f.Helper()
	log := &leftShardLog{}
	_, err := f.AddEventHandler(log)
	f.ok(err)
	s := &partitionSet{incarnation: f.partition.incarnation}
	added := map[partitionKey]*partition{}
	var wanted []Partition
	var parts []*partition
	for _, selection := range selections {
		p := Partition{Selection: selection}
		created := s.partition(&p)
		wanted, added[p.key()], parts = append(wanted, p), created, append(parts, created)
	}
	f.ok(s.commitSet(wanted, added, nil))
	return log, parts
}

// TestOneKeyInTwoPartitions recreates an object with the same key in another partition, whose watch is
// ahead. The newer object stays, and late events of the older one do not affect it.
func TestOneKeyInTwoPartitions(t *testing.T) {
	f := newFeed(t, Options{})
	log, parts := f.addSelections(selectInitials("a"), selectInitials("b"))
	a, b := parts[0], parts[1]
	f.listPartition(a, 10, object("x@a1", 10))
	f.listPartition(b, 10)
	f.ok(b.Add(object("x@b1", 20)))
	f.flush()
	expect(t, "the other", log.take(), []string{"initial x10", "lost ns/x x10", "add x20"})

	f.ok(a.Update(object("x@a1", 14)))
	f.ok(a.Delete(object("x@a1", 15)))
	f.listPartition(a, 13, object("x@a1", 13))
	f.listPartition(a, 16)
	f.flush()
	expect(t, "late events", log.take(), []string(nil))
	expect(t, "the keys", f.keys(), []string{"ns/x"})

	f.ok(a.Add(object("x@a2", 30)))
	f.ok(b.Delete(object("x@b1", 29)))
	f.flush()
	expect(t, "back again", log.take(), []string{"lost ns/x x20", "add x30"})
	f.ok(a.Delete(object("x@a2", 31)))
	f.flush()
	expect(t, "deleted", log.take(), []string{"delete x31"})
}

// TestPartitionsStoreOnlySelected verifies that lists and events of objects outside the selection are
// ignored.
func TestPartitionsStoreOnlySelected(t *testing.T) {
	for _, several := range []bool{false, true} {
		f := newFeed(t, Options{})
		selections := []Selection{selectInitials("a")}
		if several {
			selections = append(selections, selectInitials("b"))
		}
		log, parts := f.addSelections(selections...)
		f.listPartition(parts[0], 1, object("x@a1", 1), object("y@b1", 1))
		f.ok(parts[0].Add(object("z@c1", 2)))
		f.ok(parts[0].Add(object("w@a2", 3)))
		f.flush()
		expect(t, fmt.Sprint("several parts: ", several), log.take(), []string{"initial x1", "add w3"})
	}
}

// TestEvictOutOfShard verifies that only LeftShardHandlers are notified of objects that leave the selection.
// Late events do not restore them.
func TestEvictOutOfShard(t *testing.T) {
	f := newFeed(t, Options{})
	selection := selectInitials("ab")
	log, parts := f.addSelections(selection)
	plain, _ := f.recordEvents()
	f.listPartition(parts[0], 1, object("x@a1", 1), object("y@b1", 1), object("z@b2", 1))
	f.EvictOutOfShard(func() { selection.letters.Store("a") },
		func(item Item) bool { return selection.Has(item) })
	expect(t, "the keys", f.keys(), []string{"ns/x"})
	f.ok(parts[0].Update(object("y@b1", 2)))
	f.ok(parts[0].Delete(object("z@b2", 3)))
	f.listPartition(parts[0], 4, object("x@a1", 1), object("y@b1", 2))
	f.flush()
	expect(t, "events", log.sorted(), []string{"initial x1", "initial y1",
		"initial z1", "left y1", "left z1", "update x1 x1"})
	expect(t, "events of another handler", plain.sorted(), []string{"initial x1", "initial y1", "initial z1",
		"update x1 x1"})
	if n := f.Events(); n.LeftShard != 2 || n.Deletes != 0 {
		t.Errorf("Events() = %+v, want 2 objects that left and no deletions", n)
	}
	f.Stop()
	f.EvictOutOfShard(func() {}, func(Item) bool { return false })
	expect(t, "the keys after the end", f.keys(), []string{"ns/x"})
}

// TestSelectionsAfterAnotherIncarnation verifies that objects of the previous incarnation that are not
// selected leave the shard.
func TestSelectionsAfterAnotherIncarnation(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(1, object("x@a1", 1), object("y@b1", 1))
	f.stopIncarnation()
	f.startIncarnation()
	log, parts := f.addSelections(selectInitials("a"))
	f.listPartition(parts[0], 2, object("x@a1", 2))
	f.flush()
	expect(t, "events", log.sorted(), []string{"initial x1", "initial y1", "left y1", "update x1 x2"})
}

// TestListOfOnlyPartition verifies that the list of the only partition is stored atomically, and the list of
// one of several partitions object by object.
func TestListOfOnlyPartition(t *testing.T) {
	f := newFeed(t, Options{})
	_, parts := f.addSelections(selectInitials("a"))
	var list []any
	for k := range 100 {
		list = append(list, object(fmt.Sprintf("x%d@a%d", k, k), 1))
	}
	seen := map[int]bool{}
	_, err := f.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen[len(f.GetStore().ListKeys())] = true }})
	f.ok(err)
	f.ok(parts[0].Replace(list, "1"))
	f.flush()
	if len(seen) != 1 || !seen[100] {
		t.Errorf("handlers were called with cache sizes %v, want only 100", seen)
	}
	f.mu.partitions = append(parts, parts...)
	f.ok(parts[0].Replace(list[:50], "2"))
	if n := len(f.keys()); n != 50 {
		t.Errorf("%d objects after another list, want 50", n)
	}
}
