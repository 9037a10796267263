package factory_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// journal is an event handler that records what it sees, but for updates that change nothing, which a relist
// brings.
type journal struct {
	t   *testing.T
	ctx context.Context

	mu struct {
		sync.Mutex
		events  []string
		changed chan struct{}
	}
	read int // how many events have been expected so far
}

var _ cache.ResourceEventHandler = (*journal)(nil)

func newJournal(t *testing.T, ctx context.Context) *journal {
	j := &journal{t: t, ctx: ctx}
	j.mu.changed = make(chan struct{})
	return j
}

// OnAdd implements cache.ResourceEventHandler.
func (j *journal) OnAdd(obj any, _ bool) { j.note("add %s", obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (j *journal) OnUpdate(before, after any) {
	if size(before) != size(after) {
		j.note("update %s", after)
	}
}

// OnDelete implements cache.ResourceEventHandler. A deletion that a relist finds out about is one like others.
func (j *journal) OnDelete(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	j.note("delete %s", obj)
}

func size(obj any) int64 {
	n, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
	return n
}

func (j *journal) note(format string, obj any) {
	event := fmt.Sprintf(format, obj.(*unstructured.Unstructured).GetName())
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.events = append(j.mu.events, event)
	close(j.mu.changed)
	j.mu.changed = make(chan struct{})
}

// expect waits for as many events after those expected before, and checks that they are these. The order
// among them does not count: nothing is promised about the order of objects.
func (j *journal) expect(want ...string) {
	j.t.Helper()
	for {
		j.mu.Lock()
		events, changed := slices.Clone(j.mu.events[j.read:]), j.mu.changed
		j.mu.Unlock()
		if len(events) >= len(want) {
			j.read += len(want)
			got := events[:len(want)]
			slices.Sort(got)
			slices.Sort(want)
			diff(j.t, "events", want, got)
			return
		}
		select {
		case <-changed:
		case <-j.ctx.Done():
			j.t.Fatalf("waiting for the events %q, there are only %q", want, events)
		}
	}
}

// rest returns the events after those expected before, in the order of their text.
func (j *journal) rest() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	rest := slices.Clone(j.mu.events[j.read:])
	j.read = len(j.mu.events)
	slices.Sort(rest)
	return rest
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
