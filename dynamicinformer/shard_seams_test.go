package dynamicinformer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestShardRequestsMostRecentVersion verifies that a list for added ranges requests the most recent state,
// because another replica may just have changed the objects. Ranges that are added together need one list and
// one watch.
func TestShardRequestsMostRecentVersion(t *testing.T) {
	prepare := func(s *shardStage) { s.server.AddFaults(fault(widgetsPath, "watch-list", 422)) }
	withShard(t, ResourceOptions{}, prepare, func(s *shardStage) {
		s.setQuarters(0, 1, 3)
		synctest.Wait()
		lists, watches := 0, 0
		for _, request := range s.server.Requests() {
			if strings.HasPrefix(request, "list "+widgetsPath) {
				lists++
				if strings.Contains(request, "resourceVersion=0") {
					t.Errorf("a list accepts any version: %s, want the most recent", request)
				}
			}
			if strings.HasPrefix(request, "watch "+widgetsPath) {
				watches++
			}
		}
		// The remaining watch covers both. The added ranges may have been joined before they had their own
		// watch.
		if open := s.sharding.Watches.Load(); lists != 2 || watches > 3 || open != 1 {
			t.Errorf("%d lists, %d watches and %d open watches, want 2, at most 3, and 1", lists, watches,
				open)
		}
	}, 0)
}

// TestServerBeginsToFilter verifies that responses show whether the server filters by shard, and that this
// can change with the server.
func TestServerBeginsToFilter(t *testing.T) {
	prepare := func(s *shardStage) {
		s.sharding.Disabled.Store(true)
		s.server.AddFaults(fault(widgetsPath, "watch-list", 422))
	}
	withShard(t, ResourceOptions{}, prepare, func(s *shardStage) {
		expect := func(step string, want sharding.Filter) {
			t.Helper()
			s.server.AddFaults(fault(widgetsPath, "watch", 410)) // causes a relist
			s.server.CloseClientConnections()
			time.Sleep(2 * time.Minute)
			s.server.RepairPath(widgetsPath)
			s.server.AddFaults(fault(widgetsPath, "watch-list", 422))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := s.informer.Status().Shard.Filter; got != want {
				t.Errorf("%s: the filter is %q, want %q", step, got, want)
			}
			s.expectCached(step, "x0", "x1")
		}
		expect("the server does not filter", sharding.FilterClient)
		s.sharding.Disabled.Store(false)
		expect("the server filters", sharding.FilterServer)
		s.sharding.Disabled.Store(true)
		expect("it does not any more", sharding.FilterClient)
		s.sharding.Disabled.Store(false)
		s.sharding.OmitFromLists.Store(true)
		expect("it does, and is silent", sharding.FilterUnknown)
		// A watch also shows whether the server filters.
		s.sharding.Disabled.Store(true)
		s.server.CloseClientConnections()
		time.Sleep(2 * time.Minute)
		s.touch("x3", 3)
		synctest.Wait()
		if got := s.informer.Status().Shard.Filter; got != sharding.FilterClient {
			t.Errorf("after a watch, Filter = %q, want client", got)
		}
	}, 0, 1)
}

// TestShardByNamespace verifies that all objects of a namespace are in one shard.
func TestShardByNamespace(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		half := sharding.Split(2)
		var inside, outside []string
		for k := range 12 {
			ns := strings.Repeat(string(rune('a'+k)), k+1)
			server.Create(t, widgets, widget(ns, "x"), widget(ns, "y"))
			if half[0].Contains(sharding.Hash(ns)) {
				inside = append(inside, "add "+ns+"/x", "add "+ns+"/y")
			} else {
				outside = append(outside, "add "+ns+"/x", "add "+ns+"/y")
			}
		}
		slices.Sort(inside)
		slices.Sort(outside)
		shard := NewShard(sharding.ByNamespace, half[0])
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Shard: shard}})
		i := mustInformer(t, f, widgets)
		e := record(t, i)
		start(t, f)
		expectEvents(t, "one half", e, inside...)
		shard.SetRanges(half[1])
		expectEvents(t, "the other", e, outside...)
		if i.Shard() != shard || shard.Key() != sharding.ByNamespace {
			t.Errorf("Shard() = %v, want the one of the options", i.Shard())
		}
	})
}

// TestShardOfAType verifies that when a type is deleted, its objects are delivered as deletions, and that
// when it is recreated, the current ranges are listed.
func TestShardOfAType(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		for k := range fourShards {
			server.Create(t, widgets, widgetInQuarter(fmt.Sprint("x", k), k))
		}
		shard := NewShard(sharding.ByUID, fourShards[:2]...)
		types := newRegistry("widgets")
		f := newVirtualFactory(t, server, Options{Types: types, Defaults: ResourceOptions{Shard: shard}})
		e := &events{}
		_, err := f.Subscribe(Selection{Group: "example.com", Version: "v1", Resource: "widgets"}, Subscriber{
			OnAdd: func(_ schema.GroupVersionResource, u *unstructured.Unstructured,
				_ bool) {
				e.record("add", u)
			},
			OnDelete: func(_ schema.GroupVersionResource, u *unstructured.Unstructured,
				_ bool) {
				e.record("delete", u)
			},
			OnLeftShard: func(_ schema.GroupVersionResource,
				u *unstructured.Unstructured) {
				e.record("departed", u)
			},
		})
		must(t, err)
		start(t, f)
		expectEvents(t, "at first", e, "add ns/x0", "add ns/x1")
		shard.SetRanges(fourShards[1:3]...)
		expectEvents(t, "0 leaves, 2 comes", e, "add ns/x2", "departed ns/x0")
		types.remove("widgets")
		expectEvents(t, "the type goes", e, "delete ns/x1", "delete ns/x2")
		shard.SetRanges(fourShards[2:]...)
		expectEvents(t, "there is nothing to leave", e)
		types.set("widgets", nil)
		time.Sleep(time.Second)
		expectEvents(t, "the type is back", e, "add ns/x2", "add ns/x3")
	})
}

// TestShardAndTransform verifies that an object is not stored if a transform changes one of its hashed
// fields.
func TestShardAndTransform(t *testing.T) {
	options := ResourceOptions{Transform: func(obj any) (any, error) {
		if u := obj.(*unstructured.Unstructured); u.GetName() == "x1" {
			u.SetUID("another")
		}
		return obj, nil
	}}
	server := newServer(t) // The failure is logged with a pause, which the virtual clock does not advance.
	server.Create(t, widgets, widgetInQuarter("x0", 0), widgetInQuarter("x1", 1))
	options.Shard = NewShard(sharding.ByUID, sharding.Range{})
	i := startSynced(t, newFactory(t, server, Options{Defaults: options}))
	if keys := keysOf(i); !slices.Equal(keys, []string{"ns/x0"}) {
		t.Errorf("the cache has the keys %q, want ns/x0", keys)
	}
}

// TestShardInformers verifies that each shard has its own informer, and Unsharded has the informer without a
// shard.
func TestShardInformers(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		shard := NewShard(sharding.ByUID, fourShards[0])
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{Shard: shard}, Linger: -1,
			Persistence: newMemoryBackend()})
		acquire := func(options ...ResourceOptions) *Informer {
			h, err := f.Acquire(widgets, options...)
			must(t, err)
			return h.Informer()
		}
		first, again := acquire(), acquire(ResourceOptions{Shard: shard})
		other, all := acquire(ResourceOptions{Shard: NewShard(sharding.ByUID,
			fourShards[0])}), acquire(ResourceOptions{Shard: Unsharded()})
		if first != again || first == other || first == all || other == all {
			t.Error("informers of equal shards differ, or informers of different shards are equal")
		}
		if got := first.Status().Options; got != "shard by metadata.uid" {
			t.Errorf("Options = %q, want \"shard by metadata.uid\"", got)
		}
		if all.Status().Options != "" || all.Status().Shard != nil || all.Shard() != nil ||
			all.WaitForShard(t.Context()) != ErrNotSharded {
			t.Errorf("the informer without a shard has the status %+v or a shard", all.Status())
		}
		if persistence := first.Persistence(); persistence.Enabled ||
			!strings.Contains(persistence.DisabledReason, "shard") {
			t.Errorf("Persistence() of a shard = %+v, want disabled", persistence)
		}
		Unsharded().SetRanges()
		if !Unsharded().Contains(widgetInQuarter("x", 3)) || len(Unsharded().Ranges()) != 1 {
			t.Error("SetRanges changed Unsharded()")
		}
		for _, bad := range []*Shard{{}, NewShard("metadata.name")} {
			if _, err := f.Acquire(widgets, ResourceOptions{Shard: bad}); err == nil ||
				!strings.Contains(err.Error(), "NewShard") {
				t.Errorf("Acquire() with a shard by %q = %v, want an error", bad.Key(), err)
			}
		}
	})
}

// TestShardIsListedAgain verifies that if neither the namespaces of a pattern nor all namespaces can be
// listed, the informer watches nothing, and no range counts as listed. The same applies between a new grant
// and the end of the list.
func TestShardIsListedAgain(t *testing.T) {
	withShard(t, ResourceOptions{Namespaces: MatchingNamespaces([]string{"n*"}, nil)}, nil,
		func(s *shardStage) {
			s.setQuarters(0, 1)
			s.expect("at first", "add ns/x0", "add ns/x1")
			listed := func(step string, want int) {
				t.Helper()
				synctest.Wait()
				if got := s.informer.Status().Shard.Listed; len(got) != want {
					t.Errorf("%s: Listed = %v, want %d ranges", step, got, want)
				}
			}
			listed("at first", 1) // two adjacent ranges are reported as one
			forbid(s.server, widgetsPath, namespacesPath)
			s.server.CloseClientConnections()
			time.Sleep(10 * time.Minute)
			listed("nothing may be read", 0)
			s.server.Create(s.T, widgets, widgetInQuarter("late", 0))
			s.server.Repair()
			s.server.AddFaults(apitest.Fault{Path: widgetsPath,
				Verb: "watch-list"}) // the watch-list is not answered
			s.informer.Retry()
			synctest.Wait()
			listed("all may be read, and has not come", 0)
			waiting, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := s.informer.WaitForShard(waiting); err == nil {
				t.Error("WaitForShard() succeeded before the range was listed")
			}
			s.server.Repair()
			must(t, s.informer.WaitForShard(context.Background()))
			s.expectCached("at the end", "late", "x0", "x1")
		}, 0)
}
