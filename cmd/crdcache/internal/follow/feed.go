package follow

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/query"
)

// feed brings the events of one generation of a type to the screen. What is there in the beginning comes in
// no order; it is held back until all of it has come and the screen is open, and printed in that of the API
// server.
type feed struct {
	gvr         schema.GroupVersionResource
	screen      *screen
	printer     printer
	changesOnly bool
	// complete adds what is told of an event besides.
	complete func(e query.Event, at time.Time) event
	// events takes what the informer tells.
	events cache.ResourceEventHandler

	// These are changed by whoever has the turn of the screen.
	synced, begun bool
	held          []heldEvent
}

// heldEvent is an event without its object: that many of them fit into memory.
type heldEvent struct {
	key     string
	place   int
	initial bool
	print   func() error
}

// newFeed makes a feed for what a query finds among the objects of a type.
func (o Options) newFeed(s *screen, p printer, matcher *query.Matcher) *feed {
	f := &feed{screen: s, printer: p, changesOnly: o.ChangesOnly, complete: o.newEvent}
	// It fails as AddEventHandler does.
	_, _ = query.Subscribe(source{f}, matcher, f.handle)
	return f
}

// source is a feed as the informer of a query.
type source struct{ *feed }

var _ query.Informer = source{}

// AddEventHandler implements query.Informer.
func (s source) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration,
	error) {
	s.events = handler
	return nil, nil
}

// RemoveEventHandler implements query.Informer.
func (source) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// handle takes an event.
func (f *feed) handle(e query.Event) {
	if unchanged(e) {
		return
	}
	full := f.complete(e, time.Now())
	f.screen.in(func() {
		if e.Initial && f.changesOnly {
			return
		}
		if f.begun {
			f.screen.print(func() error { return f.printer.print(full) })
			f.flush()
			return
		}
		f.hold(full)
	})
}

func (f *feed) hold(e event) {
	show, err := f.printer.prepare(e)
	if err != nil {
		f.screen.print(func() error { return err })
		return
	}
	held := heldEvent{key: e.Key, initial: e.Initial, print: show}
	if e.Initial {
		held.place = print.Place(e.Object)
	}
	f.held = append(f.held, held)
}

// sync tells that all that is there in the beginning has come.
func (f *feed) sync() {
	f.screen.in(func() {
		f.synced = true
		if f.screen.open {
			f.begin()
		}
	})
}

// begin prints what is held; whoever calls it has the turn.
func (f *feed) begin() {
	if f.begun || !f.synced {
		return
	}
	f.begun = true
	slices.SortStableFunc(f.held, func(a, b heldEvent) int {
		switch {
		case a.initial && b.initial:
			return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.key, b.key))
		case a.initial:
			return -1
		case b.initial:
			return 1
		}
		return 0
	})
	for _, e := range f.held {
		f.screen.print(e.print)
	}
	f.held = nil
	f.flush()
}

// flush writes what the printer has gathered; whoever calls it has the turn.
func (f *feed) flush() {
	f.screen.print(f.printer.flush)
	f.screen.write()
}

// event is a change with what is told of it besides.
type event struct {
	query.Event
	// at is when it came.
	at time.Time
	// manager is who made it, as far as the object tells: the field managers of what was written last, with
	// commas.
	manager string
}

// newEvent completes a change. Objects lose what only the manager is read from.
func (o Options) newEvent(e query.Event, at time.Time) event {
	full := event{Event: e, at: at}
	if !o.Managers {
		return full
	}
	if e.Type != query.Deleted || !e.Gone { // who deletes leaves no trace
		full.manager = managerOf(e.Old, e.Object)
	}
	if !o.KeepManagedFields {
		full.Object, full.Old = withoutManagedFields(e.Object), withoutManagedFields(e.Old)
	}
	return full
}

// managerOf names the managers of the fields that were written between two states of an object; of one that
// was not known before, the last.
func managerOf(before, after *unstructured.Unstructured) string {
	known := map[string]time.Time{}
	if before != nil {
		for _, entry := range before.GetManagedFields() {
			known[writer(entry)] = writtenAt(entry)
		}
	}
	entries := after.GetManagedFields()
	slices.SortStableFunc(entries,
		func(a, b metav1.ManagedFieldsEntry) int { return writtenAt(b).Compare(writtenAt(a)) })
	var names []string
	for _, entry := range entries {
		at, was := known[writer(entry)]
		if was && at.Equal(writtenAt(entry)) || before == nil && len(names) > 0 {
			continue
		}
		name := entry.Manager
		if entry.Subresource != "" {
			name += "/" + entry.Subresource
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// writer tells the entries of an object apart.
func writer(entry metav1.ManagedFieldsEntry) string {
	return strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion,
		entry.Subresource}, "\n")
}

func writtenAt(entry metav1.ManagedFieldsEntry) time.Time {
	return cmp.Or(entry.Time, &metav1.Time{}).Time
}

// withoutManagedFields is the object, which is shared, without them.
func withoutManagedFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok || metadata["managedFields"] == nil {
		return object
	}
	metadata = maps.Clone(metadata)
	delete(metadata, "managedFields")
	content := maps.Clone(object.Object)
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// stampLayout is of one width, and sorts as text.
const stampLayout = "2006-01-02T15:04:05.000Z"

// stamp is when the event came.
func (e event) stamp() string { return e.at.UTC().Format(stampLayout) }

// unchanged reports whether an event tells of nothing but a row that was printed anew, as of each object that
// is listed again after a broken connection: its age is another. Without a row, a query tells of no such
// event.
func unchanged(e query.Event) bool {
	if e.Type != query.Modified || e.Old == nil ||
		e.Old.GetResourceVersion() != e.Object.GetResourceVersion() {
		return false
	}
	return reflect.DeepEqual(withoutRow(e.Old.Object), withoutRow(e.Object.Object))
}

// withoutRow is an object without what the server printed of it.
func withoutRow(object map[string]any) map[string]any {
	if _, ok := object[print.PrintedField]; !ok {
		return object
	}
	object = maps.Clone(object)
	delete(object, print.PrintedField)
	return object
}
