package dynamicinformer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/health"
)

// Metrics are the figures of one view of a type that monitoring asks for every few seconds. To tell them costs the same
// however many objects there are, and keeps neither readers nor writers waiting; Stats says more about memory, at a cost
// that grows with the cache.
//
// Views that Status.View describes alike, as two with different transforms are, have their figures in common: numbers are
// those of all of them.
type Metrics struct {
	// GVR is the type, and View what is shown of it, as Status.View has it.
	GVR  schema.GroupVersionResource
	View string
	// Status has the status of each informer: of one as a rule, of several where views are described alike, or one informer
	// is still ending when another one has begun.
	Status []Status
	// Objects counts the objects, Compressed those of them that are compressed.
	Objects, Compressed int
	// ObjectBytes, TableBytes and IndexBytes are what Stats calls so, IndexBytes of all indexes together. Those of packed
	// objects are exact, the others extrapolated from a few, usually to within a tenth.
	ObjectBytes, TableBytes, IndexBytes int64
	// CompressedBytes are those of ObjectBytes that are compressed objects.
	CompressedBytes int64
	// Indexes are in the order in which they were added.
	Indexes []IndexMetrics
	// Handlers are the present event handlers, those of subscriptions included, and of informers that have stopped none:
	// what these were not given any more is lost, and waits for nobody.
	Handlers []HandlerStatus
	// Persistence tells how the content of each informer is kept, of those whose content is to be kept.
	Persistence []PersistenceStatus
	// Counters go on when the last handle is released and the type is acquired again later.
	Counters
}

// IndexMetrics tell how much an index has, as IndexStats do.
type IndexMetrics struct {
	Name            string
	Values, Entries int
}

// Counters count what has happened. They only grow.
type Counters struct {
	// Adds, Updates and Deletes are as in EventStats.
	Adds, Updates, Deletes int64
	// Relists counts by reason how often the type was listed again.
	Relists Relists
	// Requests counts the requests that were sent, by verb: "list", "watch", or "watch-list" for a watch that begins with a
	// list. Each page of a list is a request.
	Requests map[string]int64
	// Failures counts the requests that failed and the watches that broke off: what Listener.RequestFailed is called for, and
	// every 429.
	Failures map[RequestFailureKind]int64
	// Lists counts the lists that were read to their end, initial events of watch-lists among them, and ListTime is how long
	// all of them took together.
	Lists    int64
	ListTime time.Duration
	// Hits and Misses are as in Stats.
	Hits, Misses int64
	// Saves and SaveFailures are Saves and Failures of PersistenceStatus.
	Saves, SaveFailures int64
}

// RequestFailureKind is what failures are counted by.
type RequestFailureKind struct {
	// Verb is as in RequestFailure.
	Verb   string
	Reason Reason
}

// add adds what another one has counted.
func (c *Counters) add(other Counters) {
	c.Adds += other.Adds
	c.Updates += other.Updates
	c.Deletes += other.Deletes
	c.Relists.Expired += other.Relists.Expired
	c.Relists.TooLarge += other.Relists.TooLarge
	c.Relists.Failed += other.Relists.Failed
	c.Requests = added(c.Requests, other.Requests)
	c.Failures = added(c.Failures, other.Failures)
	c.Lists += other.Lists
	c.ListTime += other.ListTime
	c.Hits += other.Hits
	c.Misses += other.Misses
	c.Saves += other.Saves
	c.SaveFailures += other.SaveFailures
}

// added returns a map to which the numbers of another one have been added: the same one, unless there was none.
func added[K comparable](to, numbers map[K]int64) map[K]int64 {
	if to == nil {
		return maps.Clone(numbers)
	}
	for k, n := range numbers {
		to[k] += n
	}
	return to
}

// counters returns what the informer has counted.
func (i *Informer) counters() Counters {
	events, counts := i.core.Events(), i.health.Counts()
	hits, misses := i.core.Decodes()
	kept := i.Persistence()
	return Counters{
		Adds: events.Adds, Updates: events.Updates, Deletes: events.Deletes,
		Relists: Relists(counts.Relists), Requests: counts.Requests, Failures: failuresOf(counts.Failures),
		Lists: counts.Lists, ListTime: counts.ListTime, Hits: hits, Misses: misses,
		Saves: int64(kept.Saves), SaveFailures: int64(kept.Failures),
	}
}

func failuresOf(counted map[health.Failure]int64) map[RequestFailureKind]int64 {
	failures := make(map[RequestFailureKind]int64, len(counted))
	for kind, n := range counted {
		failures[RequestFailureKind(kind)] = n
	}
	return failures
}

// Metrics returns the figures of everything that the factory follows, ordered by group, resource, version and view. What
// has been released is no longer among it; its counters are remembered, those of a thousand views at least.
func (f *Factory) Metrics() []Metrics {
	followed := f.followed()
	all := make([]Metrics, len(followed))
	for k, some := range followed {
		m := &all[k]
		m.GVR, m.View, m.Counters = some.gvr, some.view, some.past
		for _, i := range some.informers {
			m.add(i)
		}
	}
	return all
}

// add adds the figures of an informer.
func (m *Metrics) add(i *Informer) {
	measured := i.core.Measure()
	m.Status = append(m.Status, i.Status())
	m.Objects += measured.Objects
	m.Compressed += measured.Compressed
	m.ObjectBytes += measured.ObjectBytes
	m.CompressedBytes += measured.CompressedBytes
	m.TableBytes += measured.TableBytes
	m.IndexBytes += measured.IndexBytes
	for _, x := range measured.Indexes {
		at := slices.IndexFunc(m.Indexes, func(have IndexMetrics) bool { return have.Name == x.Name })
		if at < 0 {
			at, m.Indexes = len(m.Indexes), append(m.Indexes, IndexMetrics{Name: x.Name})
		}
		m.Indexes[at].Values += x.Values
		m.Indexes[at].Entries += x.Entries
	}
	if !i.IsStopped() {
		m.Handlers = append(m.Handlers, i.Handlers()...)
	}
	if kept := i.Persistence(); kept.Kept {
		m.Persistence = append(m.Persistence, kept)
	}
	m.Counters.add(i.counters())
}

// described is a view of a type as people are told of it.
type described struct {
	gvr  schema.GroupVersionResource
	view string
}

func (e *entry) described() described { return described{e.key.gvr, e.view} }

// following are the informers of a view, those that have not ended yet although they have been released included, and
// what those before them have counted.
type following struct {
	described
	informers []*Informer
	past      Counters
}

// followed returns what the factory follows, in order. It is looked at under one lock together with what is remembered,
// so that what an informer has counted is in either, and never in both.
func (f *Factory) followed() []following {
	f.mu.Lock()
	defer f.mu.Unlock()
	views := map[described]*following{}
	add := func(e *entry) {
		d := e.described()
		if views[d] == nil {
			views[d] = &following{described: d}
			views[d].past.add(f.mu.past[d])
		}
		views[d].informers = append(views[d].informers, e.informer)
	}
	for _, e := range f.mu.entries {
		add(e)
	}
	for e := range f.mu.alive {
		if f.mu.entries[e.key] != e {
			add(e)
		}
	}
	all := make([]following, 0, len(views))
	for _, v := range views {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b following) int {
		return cmp.Or(health.CompareGVR(a.gvr, b.gvr), cmp.Compare(a.view, b.view))
	})
	return all
}

// rememberedViews is of how many views the counters are remembered when nothing follows them any more. A program that
// asks for other views all the time must not fill its memory with that.
const rememberedViews = 1000

// rememberLocked remembers what the informer of an entry has counted, which has ended and been dropped.
func (f *Factory) rememberLocked(e *entry) {
	d := e.described()
	past, known := f.mu.past[d]
	if !known && len(f.mu.past) >= rememberedViews {
		for other := range f.mu.past {
			delete(f.mu.past, other)
			break
		}
	}
	past.add(e.informer.counters())
	f.mu.past[d] = past
}
