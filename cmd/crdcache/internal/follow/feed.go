package follow

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/query"
)

// feed brings the events of one generation of a type to the screen. What is there in the beginning comes in no
// order; it is held back until all of it has come and the screen is open, and printed in that of the API server.
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
func (s source) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
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
