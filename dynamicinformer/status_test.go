package dynamicinformer

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func TestStatusInOneLine(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for want, status := range map[string]status.Status{
		"widgets.v1.example.com: Synced": {GVR: gvr, State: status.Synced},
		"widgets.v1.example.com (namespace a): Degraded (Forbidden): you may not; stale": {
			GVR: gvr, Options: "namespace a", State: status.Degraded, Reason: status.ReasonForbidden,
			Message: "you may not", Stale: true,
		},
		"widgets.v1.example.com in version v2: Synced": {GVR: gvr, Version: "v2", State: status.Synced},
		"widgets.example.com in version v1: Synced": {GVR: gvr.GroupResource().WithVersion(""),
			Version: "v1", State: status.Synced},
		"pods.v1: Pending": {GVR: schema.GroupVersionResource{Version: "v1",
			Resource: "pods"}, State: status.Pending},
	} {
		if got := fmt.Sprint(status); got != want {
			t.Errorf("String of the status = %q, want %q", got, want)
		}
	}
}

// TestPanickedRoundSetsReason verifies that a type whose lists cause panics is degraded until a watch stays
// open. The test changes process-wide settings and therefore runs alone.
func TestPanickedRoundSetsReason(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		var trouble atomic.Bool
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{
			TweakListOptions: func(schema.GroupVersionResource, *metav1.ListOptions) {
				if trouble.Load() {
					panic("tweak trouble")
				}
			},
		}})
		i := mustInformer(t, f, widgets)
		start(t, f)
		trouble.Store(true)
		server.CloseClientConnections()
		for range 10 {
			time.Sleep(31 * time.Second)
			synctest.Wait()
			if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonPanicked || !s.Stale ||
				!strings.Contains(s.Message, "tweak trouble") {
				t.Fatalf("Status() = %+v, want Degraded with reason Panicked", s)
			}
		}
		trouble.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := i.Status(); s.State != status.Synced || s.Reason != status.ReasonNone {
			t.Errorf("afterwards Status() = %+v, want Synced", s)
		}
	})
}

type failingSource struct{ err error }

func (s failingSource) Subscribe(listener typesource.Listener) (stop func()) {
	listener.SetUnknown(map[schema.GroupVersion]error{{}: s.err})
	return func() {}
}

// TestConditionsExplainTheSource verifies that the condition's message contains the error of the source of
// types.
func TestConditionsExplainTheSource(t *testing.T) {
	want := "waiting to learn which types the server has"
	for _, tt := range []struct {
		source typesource.Source
		want   string
	}{{failingSource{errors.New("no\nway")}, want + ": no way"}, {failingSource{}, want}, {&scriptedSource{}, want}} {
		f := newFactory(t, newServer(t), Options{Types: tt.source})
		if c := f.Condition(status.ConditionReachable); c.Status != metav1.ConditionUnknown {
			t.Errorf("%T: without a request, Reachable is %+v, want Unknown", tt.source, c)
		}
		for _, c := range f.Conditions() {
			if (c.Type == status.ConditionReady || c.Type == status.ConditionTypesKnown) &&
				c.Message != tt.want {
				t.Errorf("%T: the message of %s is %q, want %q", tt.source, c.Type, c.Message, tt.want)
			}
			if other := f.Condition(c.Type); other != c {
				t.Errorf("Condition() = %+v, Conditions() has %+v", other, c)
			}
		}
	}
	refused := &url.Error{Op: "Get", URL: "https://example.com", Err: errors.New("connection refused")}
	for cause, affected := range map[error]status.ConditionType{refused: status.ConditionReachable,
		apierrors.NewUnauthorized("expired"): status.ConditionAuthenticated} {
		changes := make(chan status.Condition, 10)
		f := newFactory(t, newServer(t), Options{Types: failingSource{cause}, Listener: status.Listener{
			ConditionChanged: func(_, after status.Condition) { changes <- after }}})
		c := <-changes
		for c.Type != affected || c.Status != metav1.ConditionFalse {
			c = <-changes
		}
		if c != f.Condition(affected) || c.Since.IsZero() || !strings.Contains(cause.Error(), c.Message) {
			t.Errorf("while the source fails with %v, the condition is %+v, the event has %+v", cause,
				f.Condition(affected), c)
		}
	}
}
