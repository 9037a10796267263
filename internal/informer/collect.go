package informer

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"
)

// collected is what the initial events of a watch-list have brought. A reflector puts them into a temporary
// store, with keys of its own, and makes a list of that; nearly always all of them are ADDED, so that a list
// is all that it takes. The reflector is given the event that ends them, and what it passes to Replace then
// is replaced by this list.
type collected struct {
	items []any
	// transform is applied to each object; nil: none is.
	transform cache.TransformFunc
	keyOf     func(item any) (string, error)
	// at is where the object of a key is in items, from the first event on that changes what came before; nil
	// so far.
	at map[string]int
}

// collect reads a watch-list up to the end of its initial events, and returns a watch of the event that ends
// them, or that says why they cannot be had. That event is for the reflector, which knows what follows from
// it.
func (w *inline) collect(ctx context.Context, options *metav1.ListOptions) (watch.Interface, error) {
	if !sendsInitialEvents(options) {
		return nil, errListsOnly
	}
	// The check of client-go, which only tests want, compares what the reflector itself collects.
	compares := consistencydetector.IsDataConsistencyDetectionForWatchListEnabled()
	c := &collected{transform: w.Transformer(), keyOf: w.informer.keyOf}
	c.items = make([]any, 0, w.held()) // about as many as there are already
	var passed []watch.Event
	err := w.lw.WatchInline(ctx, options, func(event watch.Event) bool {
		last := event.Type == watch.Error || w.takes(ctx, c, event)
		if last || compares {
			passed = append(passed, event)
		}
		return !last && ctx.Err() == nil
	})
	if err != nil {
		return nil, err
	}
	if compares {
		w.collected = nil
	}
	events := make(chan watch.Event, len(passed))
	for _, event := range passed {
		events <- event
	}
	close(events)
	return watch.NewProxyWatcher(events), nil
}

// errListsOnly is for a reflector that watches itself, which it does not do after it has listed.
var errListsOnly = errors.New("the reflector only lists")

// takes collects an event, and reports whether it is the end of the initial events.
func (w *inline) takes(ctx context.Context, c *collected, event watch.Event) (last bool) {
	object, ok := w.understand(ctx, event.Object)
	if !ok {
		return false
	}
	if endsInitialEvents(event, object) {
		w.collected = c
		return true
	}
	if err := c.take(event); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to collect watch event",
			"reflector", w.informer.reflectorName(), "type", event.Type)
	}
	return false
}

// held is about how many objects the store has of what is listed. Where parts share a store, what it has of
// others does not count: each that lists would make room for all.
func (w *inline) held() int {
	now := w.informer.store.Snapshot()
	p, ok := w.target.(*part)
	switch {
	case !ok, p.isWhole():
		return now.Len()
	case p.selection != nil:
		return 0
	}
	byNamespace, ok := now.Index(cache.NamespaceIndex)
	if !ok {
		return 0
	}
	return byNamespace.Count(p.namespace())
}

func sendsInitialEvents(options *metav1.ListOptions) bool {
	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

// endsInitialEvents reports whether what follows an event is news.
func endsInitialEvents(event watch.Event, object metav1.Object) bool {
	return event.Type == watch.Bookmark &&
		object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// understand returns the metadata of an object of an event, if it is one that can be kept; what is not is
// reported.
func (w *inline) understand(ctx context.Context, event runtime.Object) (metav1.Object, bool) {
	object, err := meta.Accessor(event)
	if err == nil && isTable(event) {
		err = errTable
	}
	if err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Unable to understand watch event", "reflector",
			w.informer.reflectorName())
		return nil, false
	}
	return object, true
}

var errUnknownEvent = errors.New("unknown watch event")

// take has an event before the end take effect.
func (c *collected) take(event watch.Event) (err error) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		return nil
	default:
		return errUnknownEvent
	}
	item := any(event.Object)
	if c.transform != nil && event.Type != watch.Deleted {
		if item, err = c.transform(item); err != nil {
			return err
		}
	}
	key, err := c.keyOf(item)
	if err != nil {
		return err
	}
	if event.Type == watch.Added && c.at == nil {
		c.append(item)
		return nil
	}
	if err := c.find(); err != nil {
		return err
	}
	at, had := c.at[key]
	switch {
	case event.Type == watch.Deleted && had:
		c.items[at] = nil
		delete(c.at, key)
	case event.Type == watch.Deleted:
	case had:
		c.items[at] = item
	default:
		c.at[key] = len(c.items)
		c.append(item)
	}
	return nil
}

// append appends an item. Room is doubled where it runs out: append adds a quarter, and leaves four times as
// much behind.
func (c *collected) append(item any) {
	if len(c.items) == cap(c.items) {
		c.items = slices.Grow(c.items, len(c.items))
	}
	c.items = append(c.items, item)
}

// find fills at. Of several objects with one key the last counts.
func (c *collected) find() error {
	if c.at != nil {
		return nil
	}
	at := make(map[string]int, len(c.items))
	for n, item := range c.items {
		key, err := c.keyOf(item)
		if err != nil {
			return err
		}
		if before, twice := at[key]; twice {
			c.items[before] = nil
		}
		at[key] = n
	}
	c.at = at
	return nil
}

// list returns what there is in the end.
func (c *collected) list() []any {
	return slices.DeleteFunc(c.items, func(item any) bool { return item == nil })
}
