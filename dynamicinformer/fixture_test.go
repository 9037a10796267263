package dynamicinformer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var (
	gadgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"}
	gizmos  = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
)

const (
	widgetsPath = "/apis/example.com/v1/widgets"
	gadgetsPath = "/apis/example.com/v1/gadgets"
)

func newServer(t testing.TB) *apitest.Server {
	return apitest.New(t,
		apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true},
		apitest.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true})
}

func widget(namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func gadget(namespace, name string) *unstructured.Unstructured {
	u := widget(namespace, name)
	u.SetKind("Gadget")
	return u
}

// longContext returns a context with a timeout longer than any test. It ends later than t.Context.
func longContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// newFactory returns a factory for the server. The test's cleanup shuts it down.
func newFactory(t testing.TB, server *apitest.Server, options Options) *Factory {
	t.Helper()
	ctx := longContext(t)
	options.Config, options.HTTPClient = server.Config(), server.HTTPClient(t)
	f, err := New(options)
	must(t, err)
	t.Cleanup(func() {
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return f
}

func mustInformer(t testing.TB, f *Factory, gvr schema.GroupVersionResource) *Informer {
	t.Helper()
	i, err := f.ForResource(gvr)
	must(t, err)
	return i
}

// startSynced starts the informer of widgets and waits until it is synced.
func startSynced(t testing.TB, f *Factory) *Informer {
	t.Helper()
	i := mustInformer(t, f, widgets)
	must(t, f.Start(longContext(t)))
	must(t, f.WaitForSync(longContext(t), widgets))
	return i
}

// waitForStatuses calls WaitForSync and returns the status of each awaited informer.
func waitForStatuses(ctx context.Context, f *Factory,
	gvrs ...schema.GroupVersionResource) (statuses []status.Status, err error) {
	err = f.WaitForSync(ctx, gvrs...)
	entries := f.entries(gvrs...)
	for _, e := range entries {
		statuses = append(statuses, e.informer.Status())
	}
	return append(statuses, f.withoutInformer(gvrs, entries)...), err
}

func waitFor(t testing.TB, i *Informer, condition func(status.Status) bool) status.Status {
	t.Helper()
	ctx := longContext(t)
	for {
		status, changed := i.StatusChange()
		if condition(status) {
			return status
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("timed out waiting for another status than %+v", status)
		}
	}
}

// fault returns a fault that answers requests with an HTTP status.
func fault(path, verb string, status int) apitest.Fault {
	return apitest.Fault{Path: path, Verb: verb, Status: status}
}

// unansweredRequests returns a fault that leaves requests without a response.
func unansweredRequests(path string) apitest.Fault { return apitest.Fault{Path: path} }

// eventLog records the events of a listener.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (d *eventLog) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// all returns the recorded events.
func (d *eventLog) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

func (d *eventLog) listener() status.Listener {
	return status.Listener{
		StateChanged: func(before, after status.Status) {
			d.add("%s: %s -> %s %s", after.GVR.Resource, before.State, after.State, after.Reason)
		},
		IncarnationStarted: func(g status.Incarnation) {
			d.add("%s: started %d %s", g.GVR.Resource, g.Number, g.UID)
		},
		IncarnationSynced: func(g status.Incarnation) { d.add("%s: synced %d", g.GVR.Resource, g.Number) },
		IncarnationEnded: func(g status.Incarnation, r status.Reason) {
			d.add("%s: ended %d %s", g.GVR.Resource, g.Number, r)
		},
		Relisted: func(g status.Incarnation, r status.RelistReason) {
			d.add("%s: relisted %s", g.GVR.Resource, r)
		},
		RequestFailed: func(f status.RequestFailure) {
			d.add("%s: %s failed: %s: %v", f.GVR.Resource, f.Verb, f.Reason, f.Err)
		},
		ConditionChanged: func(before, after status.Condition) {
			d.add("%s: %s -> %s %s", after.Type, before.Status, after.Status, after.Reason)
		},
	}
}
