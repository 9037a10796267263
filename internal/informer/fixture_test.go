package informer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
)

// object returns an object of the namespace "ns". name can be name@uid; the default UID is uid-<name>.
func object(name string, version int) *unstructured.Unstructured {
	name, uid, hasUID := strings.Cut(name, "@")
	if !hasUID {
		uid = "uid-" + name
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing"}}
	u.SetNamespace("ns")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(fmt.Sprint(version))
	return u
}

// feed drives an informer in place of a reflector. An incarnation is one run of the informer.
type feed struct {
	*testing.T
	*Informer
	ctx       context.Context
	partition *partition // receives all objects; nil while the informer does not run
}

// reportedLists is the InlineWatcher of feeds. Its func, if not nil, is called before a list is stored.
type reportedLists struct {
	InlineWatcher
	onReceived func(incomplete error)
}

func (r reportedLists) ListReceived(incomplete error) {
	if r.onReceived != nil {
		r.onReceived(incomplete)
	}
}

// newFeed returns a feed whose informer runs and has not received a list.
func newFeed(t *testing.T, options Options) *feed {
	t.Helper()
	f := newIdleFeed(t, options)
	f.startIncarnation()
	return f
}

// newIdleFeed returns a feed whose informer does not run.
func newIdleFeed(t *testing.T, options Options) *feed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	f := &feed{T: t, Informer: New(nil, options), ctx: ctx}
	t.Cleanup(func() {
		f.Stop()
		if f.partition != nil {
			f.stopIncarnation()
		}
		<-f.Stopped()
		cancel()
	})
	return f
}

func (f *feed) startIncarnation() {
	f.Helper()
	ctx, cancel := context.WithCancel(f.ctx)
	g, _, err := f.makeCurrent(ctx, cancel) // without periodic resyncs
	if err != nil {
		f.Fatal(err)
	}
	f.partition = g.partition(&Partition{ListerWatcher: reportedLists{}})
	g.runSinglePartition(f.partition)
}

func (f *feed) stopIncarnation() {
	f.partition.cancel()
	f.endIncarnation(f.partition.incarnation)
	f.partition = nil
}

// forget calls Forget and waits until all events have been delivered.
func (f *feed) forget() {
	f.Helper()
	f.ok(f.Forget())
	f.flush()
}

func (f *feed) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *feed) list(version int, objects ...*unstructured.Unstructured) {
	f.Helper()
	list := make([]any, len(objects))
	for k, o := range objects {
		list[k] = o
	}
	f.ok(f.partition.Replace(list, fmt.Sprint(version)))
}

func (f *feed) put(objects ...*unstructured.Unstructured) {
	f.Helper()
	for _, o := range objects {
		f.ok(f.partition.Add(o))
	}
}

func (f *feed) delete(o *unstructured.Unstructured) {
	f.Helper()
	f.ok(f.partition.Delete(o))
}

// recordEvents adds a handler that records its events.
func (f *feed) recordEvents() (*eventLog, *delivery.Registration) {
	f.Helper()
	return f.recordEventsWith(cache.HandlerOptions{}, nil)
}

// recordEventsWith adds a handler that records its events and then calls also.
func (f *feed) recordEventsWith(options cache.HandlerOptions,
	afterEvent func(event string)) (*eventLog, *delivery.Registration) {
	f.Helper()
	l := &eventLog{onEvent: afterEvent}
	handle, err := f.AddEventHandlerWithOptions(l, options)
	f.ok(err)
	return l, handle.(*delivery.Registration)
}

// flush waits until all events have been delivered.
func (f *feed) flush() {
	f.Helper()
	f.ok(f.Flush(f.ctx))
}

// keys returns the sorted keys of the cache.
func (f *feed) keys() []string {
	keys := f.GetStore().ListKeys()
	slices.Sort(keys)
	return keys
}

// eventLog is a handler that records its events.
type eventLog struct {
	onEvent func(event string)

	mu     sync.Mutex
	events []string
}

var _ cache.ResourceEventHandler = (*eventLog)(nil)

func (l *eventLog) write(format string, args ...any) {
	event := fmt.Sprintf(format, args...)
	l.mu.Lock()
	l.events = append(l.events, event)
	l.mu.Unlock()
	if l.onEvent != nil {
		l.onEvent(event)
	}
}

// take returns the events since the last take.
func (l *eventLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

// takeSorted is take for events without a defined order.
func (l *eventLog) takeSorted() []string {
	events := l.take()
	slices.Sort(events)
	return events
}

func nameAndVersion(obj any) string {
	u := obj.(*unstructured.Unstructured)
	return u.GetName() + u.GetResourceVersion()
}

func (l *eventLog) OnAdd(obj any, isInInitialList bool) {
	if isInInitialList {
		l.write("initial %s", nameAndVersion(obj))
		return
	}
	l.write("add %s", nameAndVersion(obj))
}

func (l *eventLog) OnUpdate(oldObj, newObj any) {
	l.write("update %s %s", nameAndVersion(oldObj), nameAndVersion(newObj))
}

func (l *eventLog) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		l.write("lost %s %s", lost.Key, nameAndVersion(lost.Obj))
		return
	}
	l.write("delete %s", nameAndVersion(obj))
}
