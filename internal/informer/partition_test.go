package informer

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/store"
)

// inNamespace sets the namespace of an object.
func inNamespace(namespace string, o *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetNamespace(namespace)
	return o
}

// addPartitions adds a partition for each namespace. listed counts the calls of onListed, which is called
// once all partitions have listed.
func (f *feed) addPartitions(namespaces ...string) (parts []*partition, listed *int) {
	listed = new(int)
	f.partition.pendingLists, f.partition.onAllListed = len(namespaces), func() { *listed++ }
	for _, namespace := range namespaces {
		parts = append(parts, f.partition.partition(&Partition{Namespace: namespace,
			ListerWatcher: reportedLists{}}))
	}
	f.mu.partitions = parts
	return parts, listed
}

func (f *feed) listPartition(p *partition, version int, objects ...*unstructured.Unstructured) {
	f.Helper()
	list := make([]any, len(objects))
	for k, o := range objects {
		list[k] = o
	}
	f.ok(p.Replace(list, fmt.Sprint(version)))
}

func TestPartitionsSyncTogether(t *testing.T) {
	f := newFeed(t, Options{})
	log, handle := f.recordEvents()
	parts, listed := f.addPartitions("a", "b")
	f.listPartition(parts[0], 10, inNamespace("a", object("x", 1)))
	f.flush()
	if f.HasSynced() || handle.HasSynced() || *listed != 0 {
		t.Error("synced before the second partition has listed")
	}
	f.listPartition(parts[0], 11, inNamespace("a", object("x", 1)), inNamespace("a", object("y", 2)))
	if f.HasSynced() {
		t.Error("synced after two lists of the same partition")
	}
	f.ok(parts[0].Add(inNamespace("a", object("y", 12))))
	f.listPartition(parts[1], 7, inNamespace("b", object("x", 1)))
	f.flush()
	if !f.HasSynced() || !handle.HasSynced() || *listed != 1 {
		t.Errorf("after all lists: informer synced %v, handler %v, %d notifications; want true, true, 1",
			f.HasSynced(),
			handle.HasSynced(), *listed)
	}
	expect(t, "events", log.take(), []string{"initial x1", "update x1 x1", "initial y2",
		"update y2 y12", "initial x1"})
	expect(t, "keys", f.keys(), []string{"a/x", "a/y", "b/x"})
	if got := f.LastSyncResourceVersion(); got != "7" {
		t.Errorf("LastSyncResourceVersion() = %q, want 7", got)
	}
}

// countingSnapshot counts the keys that a snapshot returns.
type countingSnapshot struct {
	*store.Snapshot
	keys int
}

func (c *countingSnapshot) Keys() []string {
	keys := c.Snapshot.Keys()
	c.keys += len(keys)
	return keys
}

func (c *countingSnapshot) KeysByIndex(name, value string) ([]string, error) {
	keys, err := c.Snapshot.KeysByIndex(name, value)
	c.keys += len(keys)
	return keys, err
}

// TestListCostOfOneNamespace verifies that the cost of listing a namespace does not depend on other
// namespaces.
func TestListCostOfOneNamespace(t *testing.T) {
	const size = 10
	// measureList returns the bytes that listing a namespace again allocates, and the number of keys it
	// reads.
	measureList := func(others int) (bytes uint64, keys int) {
		f := newFeed(t, Options{})
		var namespaces []string
		for n := range others + 1 {
			namespaces = append(namespaces, fmt.Sprint("ns-", n))
		}
		parts, _ := f.addPartitions(namespaces...)
		var list []any
		for n, p := range parts {
			list = list[:0]
			for k := range size {
				list = append(list, inNamespace(namespaces[n], object(fmt.Sprint("o", k), 1)))
			}
			f.ok(p.Replace(list, "1"))
		}
		bytes = math.MaxUint64
		for range 20 { // other goroutines may allocate, too
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f.ok(parts[others].Replace(list, "2"))
			runtime.ReadMemStats(&after)
			bytes = min(bytes, after.TotalAlloc-before.TotalAlloc)
		}
		c := &countingSnapshot{Snapshot: f.Snapshot()}
		if found := keysOf(c, namespaces[others]+"/"); len(found) != size {
			t.Errorf("keysOf() = %q, want those of one namespace", found)
		}
		return bytes, c.keys
	}
	few, _ := measureList(2)
	many, keys := measureList(500)
	if keys != size {
		t.Errorf("the list reads %d keys, want the %d of its namespace", keys, size)
	}
	if many > 2*few {
		t.Errorf("a list allocates %d bytes with many other namespaces, %d with few, want at most twice that",
			many, few)
	}
}

// TestRelistOfOnePartition verifies that the objects of other partitions stay, whatever their resource
// versions are.
func TestRelistOfOnePartition(t *testing.T) {
	f := newFeed(t, Options{})
	log, _ := f.recordEvents()
	parts, listed := f.addPartitions("a", "ab")
	f.listPartition(parts[0], 10, inNamespace("a", object("x", 1)), inNamespace("a", object("y", 2)))
	f.listPartition(parts[1], 5, inNamespace("ab", object("x", 3)))
	f.flush()
	log.take()
	f.listPartition(parts[0], 20, inNamespace("a", object("y", 12)), inNamespace("a", object("z", 13)))
	f.ok(parts[1].Delete(inNamespace("ab", object("x", 14))))
	f.ok(parts[1].Bookmark("15"))
	f.flush()
	expect(t, "events", log.take(), []string{"lost a/x x1", "update y2 y12", "add z13", "delete x14"})
	expect(t, "keys", f.keys(), []string{"a/y", "a/z"})
	if *listed != 1 {
		t.Errorf("%d notifications that all partitions have listed, want 1", *listed)
	}
	g := f.partition
	f.stopIncarnation()
	f.startIncarnation()
	old := g.partition(&Partition{Namespace: "a", ListerWatcher: reportedLists{}})
	if err := old.Replace(nil, "21"); !errors.Is(err, ErrIncarnationOver) {
		t.Errorf("Replace() after the end of the incarnation = %v, want ErrIncarnationOver", err)
	}
}

// TestReceivedBeforeSync verifies that a list which the cache cannot store whole is reported before the
// informer has synced, so that nobody takes the content for complete.
func TestReceivedBeforeSync(t *testing.T) {
	for name, partitionOf := range map[string]func(*feed) *partition{
		"whole": func(f *feed) *partition { return f.partition },
		"namespaces": func(f *feed) *partition {
			parts, _ := f.addPartitions("ns", "other")
			return parts[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, Options{})
			p := partitionOf(f)
			var reports []error
			p.ListerWatcher = reportedLists{onReceived: func(incomplete error) {
				if reports = append(reports, incomplete); len(f.keys()) > 0 || f.HasSynced() {
					t.Error("a list is stored before it is reported")
				}
			}}
			f.listPartition(p, 1, object("x", 1), object("x@other", 2))
			if len(reports) != 1 || reports[0] == nil {
				t.Errorf("reports = %v, want one of an incomplete list", reports)
			}
		})
	}
}

// teamSelection selects objects by the label "team".
type teamSelection struct {
	GrowingSelection
	teams map[string]bool
}

func (s *teamSelection) Has(item any) bool {
	m, err := meta.Accessor(item)
	return err == nil && s.teams[m.GetLabels()["team"]]
}

func (s *teamSelection) RecordList() {}

// TestSelectionNarrowsBeforeTheChange verifies that an object leaves the cache if its new labels were
// selected when the server sent them, in an event or a list, and no longer are when they are stored.
func TestSelectionNarrowsBeforeTheChange(t *testing.T) {
	ofTeam := func(team string, version int) *unstructured.Unstructured {
		o := inNamespace("a", object("x", version))
		o.SetLabels(map[string]string{"team": team})
		return o
	}
	changes := map[string]func(f *feed, p *partition){
		"delete x1":   func(f *feed, p *partition) { f.ok(p.Add(ofTeam("second", 5))) },
		"lost a/x x1": func(f *feed, p *partition) { f.listPartition(p, 5, ofTeam("second", 5)) },
	}
	for _, namespaces := range [][]string{{"a"}, {"a", "b"}} {
		for deletion, apply := range changes {
			t.Run(fmt.Sprint(deletion, " ", len(namespaces)), func(t *testing.T) {
				f := newFeed(t, Options{})
				log, _ := f.recordEvents()
				parts, _ := f.addPartitions(namespaces...)
				s := &teamSelection{teams: map[string]bool{"first": true, "second": true}}
				parts[0].Selection = s
				f.listPartition(parts[0], 1, ofTeam("first", 1))
				f.Deselect(func() { delete(s.teams, "second") }, func(item Item) bool { return s.Has(item) })
				apply(f, parts[0])
				f.flush()
				if keys := f.keys(); len(keys) != 0 {
					t.Errorf("the cache has %v, which the selection lacks", keys)
				}
				expect(t, "events", log.take(), []string{"initial x1", deletion})
			})
		}
	}
}
