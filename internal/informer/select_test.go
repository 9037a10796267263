package informer

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

func namesOf(objects []any) []string {
	names := []string{}
	for _, obj := range objects {
		names = append(names, obj.(*unstructured.Unstructured).GetName())
	}
	slices.Sort(names)
	return names
}

func TestSelect(t *testing.T) {
	labelled := func(name, namespace, color string) *unstructured.Unstructured {
		o := object(name, 1)
		o.SetNamespace(namespace)
		o.SetLabels(map[string]string{"color": color})
		return o
	}
	for format, options := range map[string]Options{
		"object":           {},
		"packed":           {Format: store.NewPacked(nil, nil)},
		"without an index": {Indexers: cache.Indexers{}},
	} {
		t.Run(format, func(t *testing.T) {
			f := newFeed(t, options)
			f.list(1, labelled("a", "x", "red"), labelled("b", "x", "blue"), labelled("c", "y", "blue"),
				object("d", 1))
			blue := labels.SelectorFromSet(labels.Set{"color": "blue"})
			unset, err := labels.Parse("!color")
			f.ok(err)
			for _, tc := range []struct {
				what string
				got  []any
				want []string
			}{
				{"all", f.Select(labels.Everything()), []string{"a", "b", "c", "d"}},
				{"none", f.Select(labels.Nothing()), []string{}},
				{"blue", f.Select(blue), []string{"b", "c"}},
				{"without", f.Select(unset), []string{"d"}},
				{"in x", f.SelectIn("x", labels.Everything()), []string{"a", "b"}},
				{"blue in x", f.SelectIn("x", blue), []string{"b"}},
				{"in none", f.SelectIn("none", labels.Everything()), []string{}},
			} {
				expect(t, tc.what, namesOf(tc.got), tc.want)
			}
		})
	}
}

// undecodedLog is an Undecoded handler that logs keys and resource versions.
type undecodedLog struct{ eventLog }

func (*undecodedLog) TakesUndecoded() {}

func (*undecodedLog) CoalescesEvents() bool { return false }

func (k *undecodedLog) OnAdd(obj any, initial bool) {
	k.write("add %s %v", keyAndVersion(obj), initial)
}

func (k *undecodedLog) OnUpdate(before, after any) {
	k.write("update %s %s", keyAndVersion(before), keyAndVersion(after))
}

func (k *undecodedLog) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		k.write("lost %s %s", lost.Key, keyAndVersion(lost.Obj))
		return
	}
	k.write("delete %s", keyAndVersion(obj))
}

func keyAndVersion(obj any) string {
	if _, decoded := obj.(*unstructured.Unstructured); decoded {
		return "decoded"
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return err.Error()
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(key, m.GetResourceVersion())
}

// TestUndecodedHandlers checks that Undecoded handlers receive items, and that no object is decoded.
func TestUndecodedHandlers(t *testing.T) {
	format := store.NewPacked(nil, nil)
	f := newFeed(t, Options{Format: format})
	log := &undecodedLog{}
	_, err := f.AddEventHandler(log)
	f.ok(err)
	f.list(1, object("a", 1), object("b", 1))
	f.put(object("a", 2))
	f.delete(object("a", 3))
	f.list(4)
	f.flush()
	expect(t, "events", log.take(), []string{"add ns/a1 true", "add ns/b1 true", "update ns/a1 ns/a2",
		"delete ns/a3", "lost ns/b ns/b1"})
	if hits, misses := format.Decodes(); hits != 0 || misses != 0 {
		t.Errorf("%d objects were decoded by %d reads, want 0", misses, hits+misses)
	}
}

// initialsSelection is a Selection of objects whose UIDs begin with certain letters.
type initialsSelection struct{ letters, desired, listed atomic.Value }

func selectInitials(letters string) *initialsSelection {
	s := &initialsSelection{}
	s.letters.Store(letters)
	s.desired.Store(letters)
	return s
}

func (s *initialsSelection) Has(object any) bool {
	o, err := meta.Accessor(object)
	return err != nil || strings.Contains(s.letters.Load().(string), string(o.GetUID()[:1]))
}

func (s *initialsSelection) IsIncomplete() bool { return s.letters.Load() != s.desired.Load() }

func (s *initialsSelection) Complete() { s.letters.Store(s.desired.Load()) }

func (s *initialsSelection) RecordList() { s.listed.Store(s.letters.Load()) }

// leftShardLog is an eventLog that implements LeftShardHandler.
type leftShardLog struct{ eventLog }

func (l *leftShardLog) OnLeftShard(obj any) { l.write("left %s", nameAndVersion(obj)) }

// addSelection starts the partition p, which has a selection, and one partition in each of the namespaces
// others. It adds a LeftShardHandler.
func (f *feed) addSelection(p Partition, others ...string) (*leftShardLog, *partition) {
	f.Helper()
	log := &leftShardLog{}
	_, err := f.AddEventHandler(log)
	f.ok(err)
	s := &partitionSet{incarnation: f.partition.incarnation}
	created := s.partition(&p)
	wanted, added := []Partition{p}, map[partitionKey]*partition{p.key(): created}
	for _, namespace := range others {
		p := Partition{Namespace: namespace}
		wanted, added[p.key()] = append(wanted, p), s.partition(&p)
	}
	f.ok(s.commitSet(wanted, added, nil))
	return log, created
}

// TestPartitionsStoreOnlySelected verifies that lists and events of objects outside the selection are
// ignored.
func TestPartitionsStoreOnlySelected(t *testing.T) {
	for _, others := range [][]string{nil, {"other"}} {
		f := newFeed(t, Options{})
		log, p := f.addSelection(Partition{Namespace: "ns", Selection: selectInitials("a")}, others...)
		f.listPartition(p, 1, object("x@a1", 1), object("y@b1", 1))
		f.ok(p.Add(object("z@c1", 2)))
		f.ok(p.Add(object("w@a2", 3)))
		f.flush()
		expect(t, fmt.Sprint("other partitions: ", others), log.take(), []string{"initial x1", "add w3"})
	}
}

// TestSelectionGrows verifies that a partition is listed when its selection grows, and that handlers then
// receive only the added objects.
func TestSelectionGrows(t *testing.T) {
	f := newFeed(t, Options{})
	selection := selectInitials("a")
	log, p := f.addSelection(Partition{Selection: selection})
	q := &interruptibleWatcher{interrupts: make(chan struct{}, 1), onRelist: func() {}}
	w := &inlineWatch{partition: p, lw: q}
	f.addStream(w)
	f.listPartition(p, 1, object("x@a1", 1), object("y@b1", 1))
	if w.mustList() || f.ListMissing() {
		t.Error("the partition must be listed before the selection has grown")
	}
	selection.desired.Store("ab")
	if !f.ListMissing() || !w.mustList() || len(q.interrupts) != 1 || q.relists != 1 {
		t.Errorf("the watch was interrupted %d times for %d lists, want one each", len(q.interrupts),
			q.relists)
	}
	w.beginList()
	if got := f.LastSyncResourceVersion(); got != "" || selection.listed.Load() != "a" {
		t.Errorf("before the list, the version is %q and %v are listed, want none and a", got,
			selection.listed.Load())
	}
	f.listPartition(p, 2, object("x@a1", 1), object("y@b1", 1))
	f.flush()
	expect(t, "events", log.take(), []string{"initial x1", "add y1"})
	if got := f.LastSyncResourceVersion(); got != "2" || selection.listed.Load() != "ab" || w.mustList() {
		t.Errorf("after the list, the version is %q and %v are listed, want 2 and ab", got,
			selection.listed.Load())
	}
}

// TestEvictOutOfShard verifies that only LeftShardHandlers are notified of objects that leave the selection.
// Late events do not restore them.
func TestEvictOutOfShard(t *testing.T) {
	f := newFeed(t, Options{})
	selection := selectInitials("ab")
	log, p := f.addSelection(Partition{Selection: selection})
	plain, _ := f.recordEvents()
	f.listPartition(p, 1, object("x@a1", 1), object("y@b1", 1), object("z@b2", 1))
	f.EvictOutOfShard(func() { selection.letters.Store("a") },
		func(item Item) bool { return selection.Has(item) })
	expect(t, "the keys", f.keys(), []string{"ns/x"})
	f.ok(p.Update(object("y@b1", 2)))
	f.ok(p.Delete(object("z@b2", 3)))
	f.listPartition(p, 4, object("x@a1", 1), object("y@b1", 2))
	f.flush()
	expect(t, "events", log.takeSorted(), []string{"initial x1", "initial y1",
		"initial z1", "left y1", "left z1", "update x1 x1"})
	expect(t, "events of another handler", plain.takeSorted(),
		[]string{"initial x1", "initial y1", "initial z1", "update x1 x1"})
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
	log, p := f.addSelection(Partition{Selection: selectInitials("a")})
	f.listPartition(p, 2, object("x@a1", 2))
	f.flush()
	expect(t, "events", log.takeSorted(), []string{"initial x1", "initial y1", "left y1", "update x1 x2"})
}

// TestListOfOnlyPartition verifies that the list of the only partition is stored atomically, and the list of
// one of several partitions object by object.
func TestListOfOnlyPartition(t *testing.T) {
	f := newFeed(t, Options{})
	_, p := f.addSelection(Partition{Selection: selectInitials("a")})
	var list []any
	for k := range 100 {
		list = append(list, object(fmt.Sprintf("x%d@a%d", k, k), 1))
	}
	seen := map[int]bool{}
	_, err := f.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen[len(f.GetStore().ListKeys())] = true }})
	f.ok(err)
	f.ok(p.Replace(list, "1"))
	f.flush()
	if len(seen) != 1 || !seen[100] {
		t.Errorf("handlers were called with cache sizes %v, want only 100", seen)
	}
	f.mu.partitions = []*partition{p, p}
	f.ok(p.Replace(list[:50], "2"))
	if n := len(f.keys()); n != 50 {
		t.Errorf("%d objects after another list, want 50", n)
	}
}
