package delivery

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
	"github.com/crdcache/crdcache/internal/testkit"
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

// newConfig returns the Config of an informer that stores packed objects and does not stop.
func newConfig() *Config {
	return &Config{Format: store.NewPacked(nil, nil), Clock: clock.RealClock{}, Logger: &klog.Logger{},
		InformerName: func() string { return "test" }, Stopping: make(chan struct{}), Workers: &sync.WaitGroup{}}
}

// TestListsAreNotifiedOneByOne checks the notifications of the changes of a list, and their count.
func TestListsAreNotifiedOneByOne(t *testing.T) {
	old, same, next, other := packedNamed(t, "a", "1", "u"), packedNamed(t, "a", "1", "u"), packedNamed(t,
		"a", "2", "u"), packedNamed(t, "a", "3", "v")
	changes := ChangeSlice{{Key: "a", Old: old}, {Key: "a", New: next}, {Key: "a", Old: old, New: next},
		{Key: "a", Old: old, New: same}, {Key: "a", Old: next, New: other}, {Key: "a", Old: same, New: same}}
	for _, c := range []struct {
		listing List
		resyncs bool
		want    []notificationKind
	}{
		{List{}, true, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindUpdate, kindLostDeletion, kindAdd, kindUpdate}},
		{List{}, false, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindLostDeletion, kindAdd}},
		{List{FirstOfIncarnation: true}, false, []notificationKind{
			kindLostDeletion, kindAdd, kindUpdate, kindUpdate, kindLostDeletion, kindAdd, kindUpdate}},
		{List{HandlersLackOld: true, Initial: true}, true,
			[]notificationKind{kindAdd, kindAdd, kindAdd, kindAdd, kindAdd}},
	} {
		c.listing.Changes = changes
		var counts status.EventStats
		all, resyncs := c.listing.count(&counts)
		remaining := all
		if !c.resyncs {
			remaining -= resyncs
		}
		n := c.listing.element(remaining, c.resyncs)
		if n.eventCount() != len(c.want) {
			t.Errorf("%+v: there are %d notifications, want %d", c.listing, n.eventCount(), len(c.want))
			continue
		}
		var got []notificationKind
		for more := true; more; {
			var one Notification
			one, more = n.next()
			got = append(got, one.kind)
			if one.kind == kindAdd && one.initial != c.listing.Initial {
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

// mergingHandler merges waiting events.
type mergingHandler struct{ cache.ResourceEventHandler }

func (mergingHandler) CoalescesEvents() bool { return true }

// TestCoalescerGoexit checks that no events stay pending after a handler has ended its goroutine.
func TestCoalescerGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, handler := Handlers{}, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }}
		r := NewRegistration(newConfig(), mergingHandler{handler}, cache.HandlerOptions{}, false)
		h.Add(r, false)
		r.Start()
		h.Notify(0, Added(packedNamed(t, "x", "1", ""), true), Added(packedNamed(t, "y", "1", ""), true))
		<-r.ShutdownChan()
		h.Notify(0, Added(packedNamed(t, "z", "2", ""), false))
		time.Sleep(time.Minute)
		if lag := r.Lag(); lag != 0 || len(r.coalescer.mu.entries) > 0 || r.coalescer.mu.first != nil {
			t.Errorf("events are still queued, the oldest for %v", lag)
		}
	})
}

func TestResyncPeriodsAreAdjusted(t *testing.T) {
	type granted struct{ Check, Early, Late time.Duration }
	for _, tc := range []struct {
		name                  string
		informer, early, late time.Duration
		want                  granted
	}{
		{"no resyncs at all", 0, time.Minute, time.Minute, granted{0, 0, 0}},
		{"as requested", time.Minute, 2 * time.Minute, 3 * time.Minute, granted{time.Minute, 2 * time.Minute,
			3 * time.Minute}},
		{"early ones lower the check", time.Minute, 10 * time.Second, time.Minute,
			granted{10 * time.Second, 10 * time.Second, time.Minute}},
		{"late ones are raised", time.Minute, time.Minute, 10 * time.Second,
			granted{time.Minute, time.Minute, time.Minute}},
		{"at least a second", time.Minute, time.Millisecond, time.Millisecond,
			granted{time.Second, time.Second, time.Second}},
		{"none requested", time.Minute, 0, 0, granted{time.Minute, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := Handlers{Resyncs: ResyncSchedule{Period: tc.informer}}
			add := func(period time.Duration, isRunning bool) *Registration {
				r := NewRegistration(newConfig(), cache.ResourceEventHandlerFuncs{},
					cache.HandlerOptions{ResyncPeriod: &period}, false)
				h.Add(r, isRunning)
				return r
			}
			early, late := add(tc.early, false), add(tc.late, true)
			if diff := cmp.Diff(tc.want, granted{h.Resyncs.Period, early.period, late.period}); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPanicCrashesByDefault(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.PanicHandlers = handlers })
	utilruntime.PanicHandlers = nil
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("handler trouble") }}
	r := NewRegistration(newConfig(), handler, cache.HandlerOptions{}, false)
	defer func() {
		if recovered := recover(); recovered != "handler trouble" {
			t.Errorf("recovered %v, want the handler's panic", recovered)
		}
	}()
	r.call(Added(packedNamed(t, "a", "1", ""), false))
	t.Error("the panic of the handler was recovered")
}

// TestForeign verifies that Registration has every method of client-go's interface.
func TestForeign(t *testing.T) {
	if missing := testkit.Unimplemented[foreignRegistration](&Registration{}); missing != nil {
		t.Errorf("Registration lacks the methods %q", missing)
	}
}
