package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	shardselector "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var fourShards = sharding.Split(4)

// widgetInQuarter returns a widget in namespace "ns" with a UID in a quarter of the hash space.
func widgetInQuarter(name string, quarter int) *unstructured.Unstructured {
	u := widget("ns", name)
	for k := 0; ; k++ {
		if uid := fmt.Sprintf("%s-%d", name, k); fourShards[quarter].Contains(sharding.Hash(uid)) {
			u.SetUID(types.UID(uid))
			return u
		}
	}
}

// shardStage is a test with a sharded informer of widgets.
type shardStage struct {
	*testing.T
	server   *apitest.Server
	sharding *apitest.Sharding
	shard    *Shard
	factory  *Factory
	informer *Informer
	events   *events
}

// withShard runs a test with an informer of some quarters of the widgets x0 to x3, one in each quarter.
func withShard(t *testing.T, options ResourceOptions, prepare func(*shardStage),
	test func(*shardStage), of ...int) {
	t.Helper()
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		s := &shardStage{T: t, server: server, shard: NewShard(sharding.ByUID)}
		client := server.ProxyClient(t, func(next http.Handler) http.Handler {
			s.sharding = &apitest.Sharding{Handler: next}
			return s.sharding
		})
		for k := range fourShards {
			server.Create(t, widgets, widgetInQuarter(fmt.Sprint("x", k), k))
		}
		s.setQuarters(of...)
		if prepare != nil {
			prepare(s)
		}
		options.Shard = s.shard
		f, err := New(Options{
			Config: server.Config(), HTTPClient: client, Defaults: options,
			Logger: &discardLog,
		})
		must(t, err)
		defer func() {
			if err := f.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		s.factory, s.informer = f, mustInformer(t, f, widgets)
		s.events = s.record(s.informer)
		start(t, f)
		test(s)
	})
}

func (s *shardStage) record(i *Informer) *events {
	s.Helper()
	e := &events{}
	_, err := i.AddEventHandler(WithLeftShard(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.record("add", obj) },
		UpdateFunc: func(_, obj any) { e.record("update", obj) },
		DeleteFunc: func(obj any) { e.record("delete", obj) },
	}, func(obj any) { e.record("departed", obj) }))
	if err != nil {
		s.Fatal(err)
	}
	return e
}

func (s *shardStage) setQuarters(of ...int) {
	ranges := []sharding.Range{}
	for _, k := range of {
		ranges = append(ranges, fourShards[k])
	}
	s.shard.SetRanges(ranges...)
}

func (s *shardStage) expect(step string, want ...string) {
	s.Helper()
	expectEvents(s.T, step, s.events, want...)
}

// expectCached compares the content of the cache, and of its index by namespace.
func (s *shardStage) expectCached(step string, names ...string) {
	s.Helper()
	keys := []string{}
	for _, name := range names {
		keys = append(keys, "ns/"+name)
	}
	indexed, err := s.informer.GetIndexer().IndexKeys(cache.NamespaceIndex, "ns")
	if err != nil {
		s.Fatal(err)
	}
	slices.Sort(indexed)
	if got := keysOf(s.informer); !slices.Equal(got, keys) || !slices.Equal(indexed, keys) {
		s.Errorf("%s: the keys are %q, those of the index %q; want %q", step, got, indexed, keys)
	}
}

func (s *shardStage) touch(name string, quarter int) {
	s.Helper()
	u := widgetInQuarter(name, quarter)
	u.SetLabels(map[string]string{"touched": "true"})
	s.server.Update(s.T, widgets, u)
}

// countLists returns the number of lists and watch-lists.
func (s *shardStage) countLists() int {
	return count(s.server, "list "+widgetsPath) + count(s.server, "watch-list "+widgetsPath)
}

var shardServers = map[string]struct {
	prepare func(*shardStage)
	// filter is the status for lists. Watch-lists set it only if the client filters.
	filter sharding.Filter
	sent   int64
}{
	"filters and says so": {func(*shardStage) {}, sharding.FilterServer, 2},
	"filters and is silent": {func(s *shardStage) { s.sharding.OmitFromLists.Store(true) },
		sharding.FilterUnknown, 2},
	"does not filter": {func(s *shardStage) { s.sharding.Disabled.Store(true) }, sharding.FilterClient, 0},
}

// TestShard verifies that an informer follows changes of the ranges, and distinguishes objects that left the
// shard from deleted ones.
func TestShard(t *testing.T) {
	for name, server := range shardServers {
		for _, mode := range []StorageMode{StoragePacked, StorageObject, StorageMetadata, StorageAdaptive} {
			for _, watchList := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/%v/%v", name, mode, watchList), func(t *testing.T) {
					prepare := func(s *shardStage) {
						server.prepare(s)
						if !watchList {
							s.server.AddFaults(fault(widgetsPath, "watch-list", 422))
						}
					}
					options := ResourceOptions{Storage: Storage{Mode: mode}}
					if mode == StorageAdaptive {
						options.Storage = adaptive
					}
					withShard(t, options, prepare, func(s *shardStage) {
						s.expect("initial objects", "add ns/x0", "add ns/x1")
						s.expectCached("at first", "x0", "x1")
						want := server.filter
						if watchList && want == sharding.FilterServer {
							want = sharding.FilterUnknown
						}
						if got := s.informer.Status().Shard.Filter; got != want {
							t.Errorf("Status().Shard.Filter = %q, want %q", got, want)
						}
						if sent := s.sharding.Sent.Load(); sent != server.sent {
							t.Errorf("the server sent %d objects, want %d", sent, server.sent)
						}
						if dropped := s.informer.Stats().ShardDropped; (dropped == 2) != (server.sent == 0) ||
							dropped > 2 {
							t.Errorf("ShardDropped = %d, want 2 exactly if the server does not filter",
								dropped)
						}
						s.changeQuarters(watchList)
					}, 0, 1)
				})
			}
		}
	}
}

// changeQuarters changes the quarters of the informer, which are 0 and 1 at first, and checks its events and
// lists after each change.
func (s *shardStage) changeQuarters(watchList bool) {
	lists := s.countLists()
	s.setQuarters(1, 2)
	s.expect("0 leaves, 2 comes", "add ns/x2", "departed ns/x0")
	s.expectCached("0 leaves, 2 comes", "x1", "x2")
	want := 1
	if !watchList {
		want = 2 // a watch-list is requested first
	}
	if more := s.countLists() - lists; more != want {
		s.Errorf("%d lists for an added range, want %d", more, want)
	}
	for k := range 4 {
		s.touch(fmt.Sprint("x", k), k)
	}
	s.expect("all are updated", "update ns/x1", "update ns/x2")
	s.server.Delete(s.T, widgets, "ns", "x0")
	s.server.Delete(s.T, widgets, "ns", "x1")
	s.expect("one that has left and one that has not are deleted", "delete ns/x1")
	s.server.Create(s.T, widgets, widgetInQuarter("y0", 0), widgetInQuarter("y1", 1), widgetInQuarter("y2", 2))
	s.expect("objects are created", "add ns/y1", "add ns/y2")

	s.setQuarters(0, 1, 2)
	s.expect("range 0 is added again", "add ns/y0")
	s.setQuarters()
	s.expect("no range", "departed ns/x2", "departed ns/y0", "departed ns/y1", "departed ns/y2")
	s.expectCached("no range")
	if current := s.informer.Status(); current.State != status.Synced || !s.informer.HasSynced() {
		s.Errorf("no range: Status() = %+v, HasSynced() = %v; want Synced", current, s.informer.HasSynced())
	}
	s.setQuarters(0, 1, 2, 3)
	s.expect("everything is wanted", "add ns/x2", "add ns/x3", "add ns/y0", "add ns/y1", "add ns/y2")
	everything := []sharding.Range{{}}
	current := s.informer.Status().Shard
	if diff := cmp.Diff(&status.Shard{Key: sharding.ByUID, Desired: everything, Listed: everything,
		Filter: current.Filter}, current); diff != "" {
		s.Errorf("everything is wanted (-want +got):\n%s", diff)
	}
	s.expectCached("everything is wanted", "x2", "x3", "y0", "y1", "y2")
	if n := s.informer.Stats().Events; n.Deletes != 1 || n.LeftShard != 5 {
		s.Errorf("events: %+v, want 1 deletion and 5 objects that left", n)
	}
}

// TestShardLeavesAtOnce verifies that after SetRanges returns, no reader gets an object that left the shard.
// An object that leaves and returns is delivered as left and added.
func TestShardLeavesAtOnce(t *testing.T) {
	withShard(t, ResourceOptions{}, nil, func(s *shardStage) {
		s.expect("initial objects", "add ns/x0", "add ns/x1")
		s.setQuarters(1)
		s.expectCached("0 leaves", "x1")
		if s.shard.Contains(widgetInQuarter("x0", 0)) || !s.shard.Contains(widgetInQuarter("x1", 1)) {
			t.Error("Contains disagrees with the ranges")
		}
		s.server.AddFaults(fault(widgetsPath, "", 503)) // no list succeeds for now
		s.setQuarters(0, 1)
		s.expectCached("0 comes back, at first", "x1")
		s.server.Repair()
		if err := s.informer.WaitForShard(s.Context()); err != nil {
			t.Error(err)
		}
		s.expectCached("range 0 is added again", "x0", "x1")
		s.expect("0 leaves and comes back", "add ns/x0", "departed ns/x0")
		s.server.AddFaults(fault(widgetsPath, "", 503))
		for k := range 5 {
			s.setQuarters(k%2, 2+k%2)
		}
		s.setQuarters(0, 1)
		s.server.Repair()
		if err := s.informer.WaitForShard(s.Context()); err != nil {
			t.Error(err)
		}
		s.expect("1 has been away", "add ns/x0", "add ns/x1", "departed ns/x0", "departed ns/x1")
	}, 0, 1)
}

// TestWaitForShard verifies that a wait ends when the ranges have been listed, or when they no longer can be.
func TestWaitForShard(t *testing.T) {
	withShard(t, ResourceOptions{}, nil, func(s *shardStage) {
		s.server.AddFaults(unansweredRequests(widgetsPath))
		s.setQuarters(0, 1, 2)
		waits := func(ranges ...sharding.Range) <-chan error {
			result := make(chan error, 1)
			// ends with the context at the latest
			go func() { result <- s.informer.WaitForShard(s.Context(), ranges...) }()
			synctest.Wait()
			return result
		}
		if err := <-waits(fourShards[0], fourShards[1]); err != nil {
			t.Error(err)
		}
		if err := <-waits(fourShards[3]); !errors.Is(err, ErrNotInShard) ||
			!strings.Contains(err.Error(), fourShards[3].String()) {
			t.Errorf("WaitForShard() of a range that is not in the shard = %v, want ErrNotInShard", err)
		}
		added, all := waits(fourShards[2]), waits()
		select {
		case err := <-added:
			t.Errorf("WaitForShard() ended without a response: %v", err)
		case err := <-all:
			t.Errorf("WaitForShard() ended without a response: %v", err)
		default:
		}
		s.setQuarters(0, 1)
		if err := <-added; !errors.Is(err, ErrNotInShard) {
			t.Errorf("WaitForShard() of a removed range = %v, want ErrNotInShard", err)
		}
		if err := <-all; err != nil {
			t.Error(err)
		}
		s.setQuarters(0, 3)
		last := waits()
		must(t, s.factory.Shutdown(context.Background()))
		if err := <-last; !errors.Is(err, ErrStopped) {
			t.Errorf("WaitForShard() of a stopped informer = %v, want ErrStopped", err)
		}
	}, 0, 1)
}

// TestShardOfNothing verifies that if nothing needs to be listed, all ranges count as listed.
func TestShardOfNothing(t *testing.T) {
	for name, options := range map[string]ResourceOptions{
		"a selector that matches nothing": {LabelSelector: labels.Nothing()},
		"patterns that no namespace fits": {Namespaces: MatchingNamespaces([]string{"team-*"}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				createNamespaces(t, server, "other")
				forbid(server, widgetsPath)
				shard := NewShard(sharding.ByUID, fourShards[0])
				options.Shard = shard
				f := newVirtualFactory(t, server, Options{})
				i := acquire(t, f, widgets, options).Informer()
				start(t, f)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := i.WaitForShard(ctx); err != nil {
					t.Errorf("WaitForShard() = %v, want nil; Status().Shard = %+v", err, i.Status().Shard)
				}
				shard.SetRanges(fourShards[1])
				if err := i.WaitForShard(ctx, fourShards[1]); err != nil {
					t.Errorf("WaitForShard() of another range = %v, want ErrNotInShard; Status().Shard = %+v",
						err, i.Status().Shard)
				}
			})
		})
	}
}

// TestSetShardSelector compares the objects of informers with those that the selector matches, with a server
// that filters and with one that does not.
func TestSetShardSelector(t *testing.T) {
	selector := func(key string, bounds ...string) shardselector.Selector {
		var ranges []shardselector.ShardRangeRequirement
		for pair := range slices.Chunk(bounds, 2) {
			ranges = append(ranges,
				shardselector.ShardRangeRequirement{Key: key, Start: pair[0], End: pair[1]})
		}
		return shardselector.NewSelector(ranges...)
	}
	const uid, quarter, half, end = "object.metadata.uid", "0x4000000000000000", "0x8000000000000000",
		"0x10000000000000000"
	selectors := []shardselector.Selector{shardselector.Everything(), selector(uid, quarter, half),
		selector(uid, half, end), selector(uid, "0x0000000000000000", quarter, "0xc000000000000000", end),
		selector("object.metadata.namespace", half, end), selector("object.metadata.namespace", quarter, half)}
	for _, filters := range []bool{true, false} {
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			client := server.ProxyClient(t, func(next http.Handler) http.Handler {
				s := &apitest.Sharding{Handler: next}
				s.Disabled.Store(!filters)
				return s
			})
			for k := range fourShards {
				server.Create(t, widgets, widgetInQuarter(fmt.Sprint("x", k), k))
			}
			var all []any
			for _, s := range selectors {
				f, err := New(Options{Config: server.Config(), HTTPClient: client, Logger: &discardLog})
				must(t, err)
				i := mustInformer(t, f, widgets)
				must(t, i.SetShardSelector(s))
				start(t, f)
				if all == nil {
					all = i.GetStore().List()
				}
				want := []string{}
				for _, object := range all {
					if matches, err := s.Matches(object.(runtime.Object)); err != nil {
						t.Error(err)
					} else if matches {
						want = append(want, "ns/"+object.(*unstructured.Unstructured).GetName())
					}
				}
				slices.Sort(want)
				if got := keysOf(i); !slices.Equal(got, want) {
					t.Errorf("filters: %v: the informer of %q has %q, want %q", filters, s, got, want)
				}
				if err := i.SetShardSelector(s); err == nil ||
					!strings.Contains(err.Error(), informer.ErrStarted.Error()) {
					t.Errorf("SetShardSelector() after the start = %v, want ErrStarted", err)
				}
				if err := f.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	f, err := New(Options{Config: &rest.Config{}})
	must(t, err)
	i := mustInformer(t, f, widgets)
	for _, bad := range []shardselector.Selector{selector("object.metadata.name", quarter, half),
		selector(uid, "0x4", "x"), shardselector.NewSelector(selector(uid, quarter, half).Requirements()[0],
			selector("object.metadata.namespace", half, end).Requirements()[0])} {
		if err := i.SetShardSelector(bad); err == nil || i.Shard() != nil {
			t.Errorf("SetShardSelector(%q) = %v, want an error and no shard", bad, err)
		}
	}
	if err := f.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
