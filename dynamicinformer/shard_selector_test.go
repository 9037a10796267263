package dynamicinformer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	shardselector "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

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
				if err != nil {
					t.Fatal(err)
				}
				i := mustInformer(t, f, widgets)
				if err := i.SetShardSelector(s); err != nil {
					t.Fatal(err)
				}
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
	if err != nil {
		t.Fatal(err)
	}
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
