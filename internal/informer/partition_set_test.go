package informer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// plainListWatch is a ListerWatcher that has no watch-lists.
type plainListWatch struct{ cache.ListWatch }

func (*plainListWatch) IsWatchListSemanticsUnSupported() bool { return true }

// namespacePartition returns a partition that lists one object once release is closed, and counts its lists.
// Its watch sends no events.
func namespacePartition(namespace string, release <-chan struct{}, lists *int) Partition {
	return Partition{Namespace: namespace, ListerWatcher: InlineWatcherOf(&plainListWatch{cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			*lists++
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*inNamespace(namespace,
				object("x", 1))}}
			list.SetResourceVersion("1")
			return list, nil
		},
		WatchFuncWithContext: func(context.Context,
			metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}})}
}

// changingPartitions is an informer that runs with the sets of partitions that a test sends.
type changingPartitions struct {
	*Informer
	sets   chan []Partition
	ended  chan error
	listed int
	cancel context.CancelFunc
}

func newChangingPartitions(t *testing.T, options Options) *changingPartitions {
	ctx, cancel := context.WithCancel(t.Context())
	c := &changingPartitions{Informer: New(nil, options), sets: make(chan []Partition),
		ended:  make(chan error, 1),
		cancel: cancel}
	// ended by cancel
	go func() { c.ended <- c.RunPartitions(ctx, func() { c.listed++ }, nextFrom(c.sets)) }()
	return c
}

// nextFrom returns a function for RunPartitions that waits for the next set of partitions.
func nextFrom(sets <-chan []Partition) func(context.Context) ([]Partition, bool) {
	return func(ctx context.Context) ([]Partition, bool) {
		select {
		case set := <-sets:
			return set, true
		case <-ctx.Done():
			return nil, false
		}
	}
}

func (c *changingPartitions) setPartitions(parts ...Partition) {
	c.sets <- parts
	synctest.Wait()
}

func (c *changingPartitions) expect(t *testing.T, step string, synced bool, keys ...string) {
	t.Helper()
	got := c.GetStore().ListKeys()
	slices.Sort(got)
	if !slices.Equal(got, keys) || c.HasSynced() != synced || (c.listed == 1) != synced {
		t.Errorf("%s: keys %v, HasSynced() = %v, %d calls of onListed; want %v, %v", step, got, c.HasSynced(),
			c.listed, keys, synced)
	}
}

func (c *changingPartitions) end(t *testing.T) {
	c.cancel()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	c.Stop()
	<-c.Stopped()
}

// TestChangingPartitions verifies that when the set of partitions changes, the remaining partitions are not
// listed again, added ones are listed, and the objects of removed ones are deleted.
func TestChangingPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, blocked := make(chan struct{}), make(chan struct{})
		close(free)
		times := map[string]*int{"a": new(int), "ab": new(int), "b": new(int), "c": new(int)}
		part := func(namespace string, free <-chan struct{}) Partition {
			return namespacePartition(namespace, free, times[namespace])
		}
		c := newChangingPartitions(t, Options{})
		synctest.Wait()
		c.expect(t, "no set yet", false)
		c.setPartitions(part("a", free), part("ab", free), part("b", blocked))
		c.expect(t, "b has not listed", false, "a/x", "ab/x")
		c.setPartitions(part("a", free), part("ab", free))
		c.expect(t, "b is not waited for any more", true, "a/x", "ab/x")
		c.setPartitions(part("ab", free), part("c", blocked))
		c.expect(t, "later events change nothing", true, "ab/x")
		c.setPartitions(part("ab", free), part("a", free), part("a", free))
		c.expect(t, "a returns", true, "a/x", "ab/x")
		if *times["a"] != 2 || *times["ab"] != 1 || *times["b"]+*times["c"] != 0 {
			t.Errorf("lists of a: %d, ab: %d, b: %d, c: %d; want 2, 1, 0, 0", *times["a"], *times["ab"],
				*times["b"], *times["c"])
		}
		c.setPartitions()
		c.expect(t, "none", true)
		c.end(t)
	})
}

// TestNoPartitions verifies that an informer without partitions has synced.
func TestNoPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChangingPartitions(t, Options{})
		c.setPartitions()
		c.expect(t, "none", true)
		c.end(t)
		err := c.RunPartitions(t.Context(), nil,
			func(context.Context) ([]Partition, bool) { return nil, false })
		if !errors.Is(err, ErrStopped) {
			t.Errorf("after the stop: error %v, want ErrStopped", err)
		}
	})
}

// TestChangingPartitionsAfterAnotherIncarnation verifies that an informer that runs again removes the objects
// of its previous run outside the partitions.
func TestChangingPartitionsAfterAnotherIncarnation(t *testing.T) {
	f := newFeed(t, Options{})
	log, _ := f.recordEvents()
	f.list(1, inNamespace("a", object("x", 1)), inNamespace("ab", object("x", 1)), object("nowhere", 1))
	f.flush()
	log.take()
	s := &partitionSet{incarnation: f.partition.incarnation}
	f.partition.pendingLists = 1
	f.ok(s.commitSet([]Partition{{Namespace: "ab"}}, map[partitionKey]*partition{{namespace: "ab"}: {}}, nil))
	f.flush()
	got := log.take()
	slices.Sort(got)
	expect(t, "events", got, []string{"lost a/x x1", "lost ns/nowhere nowhere1"})
	expect(t, "keys", f.keys(), []string{"ab/x"})
	if f.partition.pendingLists != 1 {
		t.Errorf("%d lists are pending, want 1", f.partition.pendingLists)
	}
}

// TestPartitionsResync verifies that handlers receive resyncs even if a partition never lists.
func TestPartitionsResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		close(free)
		c := newChangingPartitions(t, Options{ResyncPeriod: time.Minute})
		var events []string
		_, err := c.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
			events = append(events, obj.(*unstructured.Unstructured).GetNamespace())
		}})
		if err != nil {
			t.Fatal(err)
		}
		c.setPartitions(namespacePartition("a", make(chan struct{}), new(int)),
			namespacePartition("b", free, new(int)), namespacePartition("c", free, new(int)))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		slices.Sort(events)
		expect(t, "namespaces of the updated objects", events, []string{"b", "c"})
		c.end(t)
	})
}
