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
	case a == b, a == sharding.FilterClient:
		return a
	case b == sharding.FilterClient:
		return b
	}
	return sharding.FilterUnknown
}

// Selection is the set of hash ranges that one reflector reads. Objects outside of it are filtered from every
// response, even if the server filters too. It is safe for concurrent use.
type Selection struct {
	// Key is the hashed field.
	Key sharding.Key
	// desired returns the ranges to read. It can change at any time.
	desired func() Ranges
	// onChange is called when the result of Filter changes.
	onChange func()
	// ranges are the ranges of the next response, listed the part of them that has been listed. requested are
	// the ranges of the latest request.
	ranges, listed, requested atomic.Pointer[Ranges]
	filter                    atomic.Pointer[sharding.Filter]
	// dropped, if set, counts the filtered objects of this and other selections. unrequested counts the
	// received objects outside of requested.
	dropped     *atomic.Int64
	unrequested atomic.Int64
}

// NewSelection returns a selection of the ranges that desired returns. onChange is called, without locks,
// when the result of Filter changes. Filtered objects are counted in dropped. Both can be nil.
func NewSelection(key sharding.Key, desired func() Ranges, onChange func(),
	dropped *atomic.Int64) *Selection {
	s := &Selection{Key: key, desired: desired, onChange: onChange, dropped: dropped}
	ranges := desired()
	s.ranges.Store(&ranges)
	s.requested.Store(&ranges)
	s.listed.Store(&Ranges{})
	unknown := sharding.FilterUnknown
	s.filter.Store(&unknown)
	return s
}

// Ranges returns the selected ranges.
func (s *Selection) Ranges() Ranges { return *s.ranges.Load() }

// Listed returns the selected ranges that have been listed.
func (s *Selection) Listed() Ranges { return *s.listed.Load() }

// The following methods must not be called concurrently.

// Narrow removes the ranges that are no longer desired. A selection without ranges stays empty.
func (s *Selection) Narrow() {
	desired := s.desired()
	ranges, listed := s.Ranges().And(desired), s.Listed().And(desired)
	s.ranges.Store(&ranges)
	s.listed.Store(&listed)
}

// IsIncomplete reports whether ranges were added since the latest call of Complete.
func (s *Selection) IsIncomplete() bool {
	return len(s.Ranges()) > 0 && len(s.desired().Minus(s.Ranges())) > 0
}

// Complete adds the desired ranges, before a list.
func (s *Selection) Complete() {
	ranges := s.Ranges().Or(s.desired())
	s.ranges.Store(&ranges)
}

func (s *Selection) IsEmpty() bool { return len(s.Ranges()) == 0 }

func (s *Selection) RecordList() { s.listed.Store(s.ranges.Load()) }

// Filter returns whether the server or the client filters by shard.
func (s *Selection) Filter() sharding.Filter { return *s.filter.Load() }

func (s *Selection) Has(object any) bool { return s.Ranges().Has(s.Key, object) }

// Has reports whether an object's hash is in one of the ranges. It returns true for an object without
// metadata; that error is reported elsewhere.
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

// admitUnpacked is admitHash of the hash of an object that has not been packed.
func (s *Selection) admitUnpacked(namespace, uid []byte) bool {
	value := uid
	if s.Key == sharding.ByNamespace {
		value = namespace
	}
	return s.admitHash(sharding.Hash(value))
}

// admitsObject is admitHash of the hash of an object. It returns true for an object without metadata.
func (s *Selection) admitsObject(object runtime.Object) bool {
	o, err := meta.Accessor(object)
	return err != nil || s.admitHash(s.Key.Hash(o))
}

// admitHash reports whether a received object with this hash is selected, and records unrequested ones.
func (s *Selection) admitHash(hash uint64) bool {
	if s.Ranges().Contains(hash) {
		return true
	}
	if s.dropped != nil {
		s.dropped.Add(1)
	}
	if !s.requested.Load().Contains(hash) {
		s.unrequested.Add(1)
		s.recordFilter(sharding.FilterClient)
	}
	return false
}

// recordFilter records whether the server or the client filtered a response.
func (s *Selection) recordFilter(filter sharding.Filter) {
	if s.Filter() == filter {
		return
	}
	if before := s.filter.Swap(&filter); *before != filter && s.onChange != nil {
		s.onChange()
	}
}

// prepareList completes the options of a list or watch-list. It returns a record of the request to evaluate
// the response, or nil if s is nil.
func (s *Selection) prepareList(options *metav1.ListOptions) *shardRequest {
	if s == nil {
		return nil
	}
	if options.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		// A cached list could miss changes that another replica saw before it released the shard.
		options.ResourceVersion = ""
	}
	return &shardRequest{selection: s, selector: s.prepareWatch(options), unrequested: s.unrequested.Load()}
}

// prepareWatch completes the options of a watch, and returns the selector. It does nothing if s is nil.
func (s *Selection) prepareWatch(options *metav1.ListOptions) (selector string) {
	if s == nil {
		return ""
	}
	ranges := s.Ranges().requestRanges()
	s.requested.Store(&ranges)
	options.ShardSelector = ranges.Selector(s.Key)
	return options.ShardSelector
}

type shardRequest struct {
	selection   *Selection
	selector    string
	unrequested int64 // Selection.unrequested before the request
}

// listed evaluates a page of a list. list is nil for a watch-list, whose events never contain the selector.
func (a *shardRequest) listed(list runtime.Object) {
	if a == nil {
		return
	}
	switch echo := selectorEcho(list); {
	case a.selection.unrequested.Load() > a.unrequested: // objects outside of the selector arrived
	case echo != "" && echo == a.selector:
		a.selection.recordFilter(sharding.FilterServer)
	default:
		a.selection.recordFilter(sharding.FilterUnknown)
	}
}

// selectorEcho returns the selector in the metadata of a list.
func selectorEcho(list runtime.Object) string {
	switch list := list.(type) {
	case *packed.List:
		if info := list.ShardInfo; info != nil {
			return info.Selector
		}
	case *unstructured.UnstructuredList:
		echo, _, _ := unstructured.NestedString(list.Object, "metadata", "shardInfo", "selector")
		return echo
	}
	return ""
}

// acceptBoth returns the conjunction of two filters; a nil filter accepts all.
func acceptBoth(a, b func(runtime.Object) bool) func(runtime.Object) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(object runtime.Object) bool { return a(object) && b(object) }
}

// isSkipped reports whether an event represents a filtered object.
func isSkipped(event watch.Event) bool { return event.Type == "" }
