package requests

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/packed"
)

// CombineFilters returns the filter of two selections together.
func CombineFilters(a, b sharding.Filter) sharding.Filter {
	switch {
	case a == sharding.FilterClient || b == sharding.FilterClient:
		return sharding.FilterClient
	case a == b:
		return a
	}
	return sharding.FilterUnknown
}

// Selection is what one reflector reads of a shard: ranges that only get fewer. What is not in them is left
// out of every answer, whoever else does that. It is safe for concurrent use.
type Selection struct {
	// Key is what is hashed.
	Key sharding.Key
	// changed is called when Filter returns something else.
	changed func()
	// ranges are those that are wanted, asked those that the latest request has asked for.
	ranges, asked atomic.Pointer[Ranges]
	filter        atomic.Pointer[sharding.Filter]
	// dropped counts the objects that were left out, here and by others; nil: nobody counts. foreign counts
	// those that were not asked for.
	dropped *atomic.Int64
	foreign atomic.Int64
}

// NewSelection returns a selection. changed is called, with no lock held, when Filter returns something else,
// and what is left out is counted in dropped; both may be nil.
func NewSelection(key sharding.Key, ranges Ranges, changed func(), dropped *atomic.Int64) *Selection {
	s := &Selection{Key: key, changed: changed, dropped: dropped}
	s.ranges.Store(&ranges)
	s.asked.Store(&ranges)
	unknown := sharding.FilterUnknown
	s.filter.Store(&unknown)
	return s
}

// Join returns a selection of what is selected now by this one and others of the same key.
func (s *Selection) Join(others ...*Selection) *Selection {
	ranges, filter := s.Ranges(), s.Filter()
	for _, other := range others {
		ranges, filter = ranges.Or(other.Ranges()), CombineFilters(filter, other.Filter())
	}
	joined := NewSelection(s.Key, ranges, s.changed, s.dropped)
	joined.filter.Store(&filter)
	return joined
}

// Ranges are those that are selected.
func (s *Selection) Ranges() Ranges { return *s.ranges.Load() }

// Narrow leaves out what is not among some ranges, from now on. It must not be called twice at a time.
func (s *Selection) Narrow(to Ranges) {
	narrowed := s.Ranges().And(to)
	s.ranges.Store(&narrowed)
}

// Filter tells who filters.
func (s *Selection) Filter() sharding.Filter { return *s.filter.Load() }

// Has reports whether an object is selected.
func (s *Selection) Has(object any) bool { return s.Ranges().Has(s.Key, object) }

// Has reports whether an object is in one of the ranges, by the hash that counts. One without metadata is: it
// is not for a shard to say what is wrong with it.
func (r Ranges) Has(key sharding.Key, object any) bool {
	if o, ok := object.(*packed.Object); ok {
		if key == sharding.ByNamespace {
			return r.Contains(sharding.Hash(o.Namespace()))
		}
		return r.Contains(sharding.Hash(o.UID()))
	}
	o, err := meta.Accessor(object)
	return err != nil || r.Contains(key.Hash(o))
}

// wants is Has for what comes, before there is an object.
func (s *Selection) wants(namespace, uid []byte) bool {
	value := uid
	if s.Key == sharding.ByNamespace {
		value = namespace
	}
	return s.take(sharding.Hash(value))
}

// keep is wants for an object.
func (s *Selection) keep(object runtime.Object) bool {
	o, err := meta.Accessor(object)
	return err != nil || s.take(s.Key.Hash(o))
}

// take reports whether what came with a hash is selected, and takes note of what was not asked for.
func (s *Selection) take(hash uint64) bool {
	if s.Ranges().Contains(hash) {
		return true
	}
	if s.dropped != nil {
		s.dropped.Add(1)
	}
	if !s.asked.Load().Contains(hash) {
		s.foreign.Add(1)
		s.shows(sharding.FilterClient)
	}
	return false
}

// shows records what an answer shows.
func (s *Selection) shows(by sharding.Filter) {
	if s.Filter() == by {
		return
	}
	if before := s.filter.Swap(&by); *before != by && s.changed != nil {
		s.changed()
	}
}

// ask completes the options of a request. It returns what tells, when the answer has come, what that shows;
// that is nil where there is no selection.
func (s *Selection) ask(options *metav1.ListOptions) *asking {
	if s == nil {
		return nil
	}
	ranges := s.Ranges().selectedBy()
	s.asked.Store(&ranges)
	options.ShardSelector = ranges.Selector(s.Key)
	if options.ResourceVersion == "0" {
		// What another process has done with an object before it gave it up has to be seen.
		options.ResourceVersion = ""
	}
	return &asking{selection: s, selector: options.ShardSelector, foreign: s.foreign.Load()}
}

// asking is a request with a selector.
type asking struct {
	selection *Selection
	selector  string
	foreign   int64 // of the selection, before
}

// listed takes note of what a page of a list shows.
func (a *asking) listed(list runtime.Object) {
	if a == nil {
		return
	}
	switch echo := echoOf(list); {
	case a.came():
	case echo == a.selector:
		a.selection.shows(sharding.FilterServer)
	default:
		a.selection.shows(sharding.FilterUnknown)
	}
}

// watched takes note that the initial events of a watch-list are over, which never say whether they were
// selected.
func (a *asking) watched() {
	if a != nil && !a.came() {
		a.selection.shows(sharding.FilterUnknown)
	}
}

// came reports whether something came that was not asked for.
func (a *asking) came() bool { return a.selection.foreign.Load() > a.foreign }

// echoOf returns the selector that a list says it was made with.
func echoOf(list runtime.Object) string {
	switch list := list.(type) {
	case *packed.List:
		if list.ShardInfo != nil {
			return list.ShardInfo.Selector
		}
	case *unstructured.UnstructuredList:
		echo, _, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
		return echo
	}
	return ""
}

// both returns what passes on what two filters do; nil passes on everything.
func both(a, b func(runtime.Object) bool) func(runtime.Object) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(object runtime.Object) bool { return a(object) && b(object) }
}

// isSkipped reports whether an event stands for one that was left out.
func isSkipped(event watch.Event) bool { return event.Type == "" }
