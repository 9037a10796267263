package follow

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/indexers/query"
)

// feed forwards the events of one informer run to the screen. It buffers the initial objects, which arrive
// unordered, until all have arrived and the screen is open. Then it prints them in the server's order.
type feed struct {
	gvr         schema.GroupVersionResource
	screen      *screen
	printer     printer
	changesOnly bool
	reader      *session.Reader
	// warn writes a line to stderr. failures counts the objects on which the query failed.
	warn     func(format string, args ...any)
	failures int
	// events receives the informer's events.
	events cache.ResourceEventHandler

	// The lock of the screen guards these fields.
	synced, printing bool
	buffered         []bufferedEvent
}

// bufferedEvent is an event without its object, to save memory.
type bufferedEvent struct {
	key     string
	index   int
	initial bool
	print   func() error
}

func (o Options) newFeed(s *screen, p printer, matcher *query.Matcher) *feed {
	f := &feed{screen: s, printer: p, changesOnly: o.ChangesOnly, reader: o.Reader}
	// It fails only if AddEventHandler fails, which never happens in feedSource.
	_, _ = query.Subscribe(feedSource{f}, matcher, f.onEvent)
	return f
}

// feedSource adapts a feed to query.Informer.
type feedSource struct{ *feed }

func (s feedSource) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	s.events = handler
	return nil, nil
}

func (feedSource) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

// maxFailureWarnings bounds the warnings of a feed about objects on which the query fails.
const maxFailureWarnings = 10

func (f *feed) onEvent(e query.Event) {
	if e.Type == query.Failed {
		if f.failures++; f.failures <= maxFailureWarnings {
			f.warn("warning: not shown: %s", print.OneSafeLine(e.Err.Error()))
		} else if f.failures == maxFailureWarnings+1 {
			f.warn("warning: more objects of %s failed; further failures are not printed", f.gvr.GroupResource())
		}
		return
	}
	if isUnchanged(e) {
		return
	}
	detailed := event{Event: e, cluster: f.reader.Cluster}
	f.screen.withLock(func() {
		if e.Initial && f.changesOnly {
			return
		}
		if f.printing {
			f.screen.printIfOpen(func() error { return f.printer.print(detailed) })
			f.flush()
			return
		}
		f.buffer(detailed)
	})
}

func (f *feed) buffer(e event) {
	printLater, err := f.printer.prepare(e)
	if err != nil {
		f.screen.printIfOpen(func() error { return err })
		return
	}
	pending := bufferedEvent{key: e.Key, initial: e.Initial, print: printLater}
	if e.Initial {
		pending.index = print.RowIndex(e.Object)
	}
	f.buffered = append(f.buffered, pending)
}

// markSynced is called when all initial objects have arrived.
func (f *feed) markSynced() {
	f.screen.withLock(func() {
		f.synced = true
		if f.screen.open {
			f.printBuffered()
		}
	})
}

// printBuffered prints the buffered events. The caller must hold the lock of the screen.
func (f *feed) printBuffered() {
	if f.printing || !f.synced {
		return
	}
	f.printing = true
	slices.SortStableFunc(f.buffered, func(a, b bufferedEvent) int {
		switch {
		case a.initial && b.initial:
			return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.key, b.key))
		case a.initial:
			return -1
		case b.initial:
			return 1
		}
		return 0
	})
	for _, e := range f.buffered {
		f.screen.printIfOpen(e.print)
	}
	f.buffered = nil
	f.flush()
}

// flush writes the printer's buffered output. The caller must hold the lock of the screen.
func (f *feed) flush() {
	f.screen.printIfOpen(f.printer.flush)
	f.screen.writeBuffer()
}

type event struct {
	query.Event
	cluster string // empty if the command reads only one cluster
}

// isUnchanged reports whether an update changes only the printed row. An example is the age of an object that
// is listed again after a broken connection.
func isUnchanged(e query.Event) bool {
	if e.Type != query.Modified || e.Old == nil ||
		e.Old.GetResourceVersion() != e.Object.GetResourceVersion() {
		return false
	}
	return reflect.DeepEqual(withoutRow(e.Old.Object), withoutRow(e.Object.Object))
}

func withoutRow(object map[string]any) map[string]any {
	if _, ok := object[print.RowField]; !ok {
		return object
	}
	object = maps.Clone(object)
	delete(object, print.RowField)
	return object
}
