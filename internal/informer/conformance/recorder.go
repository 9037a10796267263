package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// sentinel is the name of an object. Its changes show that all earlier events were delivered.
const sentinel = "sentinel"

// recorder is an event handler that records a trace of each object.
type recorder struct {
	// intercept, if not nil, is called before each event is recorded.
	intercept func()

	mu struct {
		sync.Mutex
		traces map[string][]string
		// sentinel is the last value of the sentinel.
		sentinel int
		// changed is closed and replaced with every event.
		changed chan struct{}
	}
}

func newRecorder() *recorder {
	r := &recorder{}
	r.mu.traces = map[string][]string{}
	r.mu.changed = make(chan struct{})
	return r
}

// OnAdd implements cache.ResourceEventHandler.
func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	u := obj.(*unstructured.Unstructured)
	if isInInitialList {
		r.record(u, "initial "+value(u))
		return
	}
	r.record(u, "add "+value(u))
}

// OnUpdate implements cache.ResourceEventHandler.
func (r *recorder) OnUpdate(oldObj, newObj any) {
	before, after := oldObj.(*unstructured.Unstructured), newObj.(*unstructured.Unstructured)
	switch {
	case before.GetUID() != after.GetUID():
		r.record(after, fmt.Sprintf("other object %s→%s", value(before), value(after)))
	case before.GetResourceVersion() == after.GetResourceVersion():
		r.record(after, "resync "+value(after))
	default:
		r.record(after, fmt.Sprintf("update %s→%s", value(before), value(after)))
	}
}

// OnDelete implements cache.ResourceEventHandler.
func (r *recorder) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		u := lost.Obj.(*unstructured.Unstructured)
		if key, err := cache.MetaNamespaceKeyFunc(u); err != nil || key != lost.Key {
			r.record(u, fmt.Sprintf("lost %s under the wrong key %s", value(u), lost.Key))
			return
		}
		r.record(u, "lost "+value(u))
		return
	}
	u := obj.(*unstructured.Unstructured)
	r.record(u, "delete "+value(u))
}

// value returns the value that a scenario has written to an object, with the mark of its transform.
func value(u *unstructured.Unstructured) string {
	v, _, _ := unstructured.NestedString(u.Object, "data", "value")
	if mark := u.GetAnnotations()["transformed"]; mark != "" {
		v += " transformed " + mark
	}
	return v
}

func (r *recorder) record(u *unstructured.Unstructured, event string) {
	if r.intercept != nil {
		r.intercept()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if u.GetName() == sentinel {
		// A transform may add its mark to the number.
		number, _, _ := strings.Cut(value(u), " ")
		r.mu.sentinel, _ = strconv.Atoi(number)
	} else {
		trace := r.mu.traces[u.GetName()]
		// The number of resyncs depends on time.
		if !strings.HasPrefix(event, "resync ") || len(trace) == 0 || trace[len(trace)-1] != event {
			r.mu.traces[u.GetName()] = append(trace, event)
		}
	}
	close(r.mu.changed)
	r.mu.changed = make(chan struct{})
}

// await waits until the trace satisfies a condition.
func (r *recorder) await(ctx context.Context, done func(traces map[string][]string,
	sentinel int) bool) error {
	for {
		r.mu.Lock()
		ok, changed := done(r.mu.traces, r.mu.sentinel), r.mu.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; seen so far: %v", ctx.Err(), r.trace())
		case <-changed:
		}
	}
}

// trace returns one line for each object.
func (r *recorder) trace() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for name, events := range r.mu.traces {
		lines = append(lines, name+": "+strings.Join(events, ", "))
	}
	slices.Sort(lines)
	return lines
}
