package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/packed"
)

// Selectors is a set of selectors that may change at any time. It limits informers to the objects that at
// least one of them selects: see ResourceOptions.Selectors. Without selectors, its informers are synced and
// empty, and send no requests. All methods are safe for concurrent use, also before and after the run.
//
// An added selector costs one list of its objects and a restart of the watch; the other objects are not
// listed again (TestSelectorsListOnlyTheNewPart). Selectors that are added together can share a list. For
// types that are polled, or have expired versions or none that are numbers, everything is listed again.
//
// Options.Persistence does not store such an informer. AnyOf, a Shard, a Transform, StorageNone and a Prune
// of labels cannot be combined with Selectors.
type Selectors struct {
	// changing serializes changes, so that all informers see the same sequence.
	changing  sync.Mutex
	current   atomic.Pointer[selectorSet]
	informers runningInformers
	// progress is closed and replaced when an informer has listed, or its partitions have changed.
	progress atomic.Pointer[chan struct{}]
}

// NewSelectors returns a set. Options with fields that Add refuses are invalid.
func NewSelectors(selectors ...Selector) *Selectors {
	s := &Selectors{}
	s.current.Store(new(selectorSetOf(selectors)))
	s.wake()
	return s
}

func (s *Selectors) set() selectorSet { return *s.current.Load() }

// Add adds selectors. Their objects follow asynchronously, as additions outside the initial list: see
// Informer.WaitForSelectors. It ignores selectors that are in the set. It returns an error, and adds nothing,
// for fields other than metadata.name and metadata.namespace; set these in ResourceOptions.FieldSelector.
func (s *Selectors) Add(selectors ...Selector) error {
	added := selectorSetOf(selectors)
	if err := added.validate(); err != nil {
		return fmt.Errorf("dynamicinformer: add selectors: %w", err)
	}
	if len(added.minus(s.set())) == 0 {
		return nil
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.current.Store(new(s.set().or(added)))
	for _, i := range s.informers.all() {
		i.selections.Changed()
		if i.core.ListMissing() {
			i.retry.Send()
		}
	}
	return nil
}

// Remove removes selectors, and ignores others than the set's. When it returns, no informer shows an
// object that no remaining selector selects, and handlers have a deletion of it in their queues
// (cache.DeletedFinalStateUnknown, because it may exist).
func (s *Selectors) Remove(selectors ...Selector) {
	s.changing.Lock()
	defer s.changing.Unlock()
	next := s.set().minus(selectorSetOf(selectors))
	if len(next) == len(s.set()) {
		return
	}
	s.current.Store(&next)
	for _, i := range s.informers.all() {
		i.core.Deselect(i.selections.Narrow, func(item any) bool { return next.has(item) })
		i.selections.Changed()
	}
}

func (s *Selectors) wake() {
	if before := s.progress.Swap(new(make(chan struct{}))); before != nil {
		close(*before)
	}
}

func (s *Selectors) register(i *Informer) (leave func()) {
	if s == nil {
		return func() {}
	}
	leave = s.informers.add(i)
	i.selections.Changed() // the set may have changed since the informer was made
	return leave
}

// newSelections returns the selections for the informer's follower; nil without Selectors.
func (s *Selectors) newSelections(i *Informer) *follow.Selections {
	if s == nil {
		return nil
	}
	create := func() follow.Selection {
		current := s.set()
		if len(current) == 0 {
			return nil
		}
		selection := &partSelection{informer: i}
		selection.current.Store(&current)
		selection.listed.Store(&selectorSet{})
		return selection
	}
	return follow.NewSelections(create, func() {
		i.health.UpdateSelectors(func() int { return len(i.unlisted()) })
		s.wake()
	})
}

// validateSelectors returns an error if the options cannot be combined with Selectors.
func (o ResourceOptions) validateSelectors() error {
	if o.Selectors == nil {
		return nil
	}
	pruner, err := o.pruner()
	switch {
	case o.Selectors.current.Load() == nil:
		return errors.New("Selectors is empty: use NewSelectors")
	case len(o.AnyOf) > 0:
		return errors.New("AnyOf and Selectors are set: set one of them")
	case o.Shard.orNil() != nil:
		return errors.New("Shard and Selectors are set: an object could leave both; set one of them")
	case o.Transform != nil:
		return errors.New("a Transform could change the labels, by which Selectors select: use Keep or Prune")
	case o.Storage.Mode == StorageNone:
		return fmt.Errorf("removed Selectors delete stored objects: %w", ErrNotStored)
	case err == nil && pruner.Drops(packed.Path{{Key: "metadata"}, {Key: "labels"}}, true):
		return errors.New("Prune drops labels, by which Selectors select the objects: keep the labels")
	}
	return o.Selectors.set().validate()
}

// WaitForSelectors waits until the cache has all objects of the selectors that the set has now. It does not
// wait for a selector that is removed. It returns ErrStopped if the informer stops, or the cause of ctx.
func (i *Informer) WaitForSelectors(ctx context.Context) error {
	s := i.options.Selectors
	if s == nil {
		return fmt.Errorf("%s: wait for selectors: ResourceOptions.Selectors is not set", formatGVR(i.gvr))
	}
	for awaited := s.set(); ; {
		progress := *s.progress.Load()
		if len(i.unlisted().and(awaited)) == 0 {
			return nil
		}
		select {
		case <-progress:
		case <-i.stopped:
			return ErrStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unlisted returns the selectors with objects that the cache may lack.
func (i *Informer) unlisted() selectorSet {
	desired := i.options.Selectors.set()
	listed := desired
	watched := i.selections.Each(func(selection follow.Selection) {
		if part, ok := selection.(*partSelection); ok {
			listed = listed.and(*part.listed.Load())
		} else {
			listed = nil
		}
	})
	if !watched {
		return desired
	}
	return desired.minus(listed)
}

// partSelection has the selectors of one partition. It implements follow.Selection.
type partSelection struct {
	informer *Informer
	// current selects the objects of the next response. listed is the part of it that has been listed.
	current, listed atomic.Pointer[selectorSet]
}

var _ informer.GrowingSelection = (*partSelection)(nil)

func (p *partSelection) desired() selectorSet { return p.informer.options.Selectors.set() }

func (p *partSelection) missing() selectorSet { return p.desired().minus(*p.current.Load()) }

func (p *partSelection) Has(object any) bool { return p.current.Load().has(object) }

func (p *partSelection) IsEmpty() bool { return len(*p.current.Load()) == 0 }

func (p *partSelection) IsIncomplete() bool { return !p.IsEmpty() && len(p.missing()) > 0 }

func (p *partSelection) Complete() { p.grow(p.desired()) }

func (p *partSelection) grow(added selectorSet) {
	p.current.Store(new(p.current.Load().or(added.and(p.desired()))))
}

func (p *partSelection) Narrow() {
	p.current.Store(new(p.current.Load().and(p.desired())))
	p.listed.Store(new(p.listed.Load().and(p.desired())))
}

func (p *partSelection) RecordList() { p.listed.Store(p.current.Load()) }

// Part implements informer.GrowingSelection: all missing selectors, if the server can evaluate a requirement
// that they have in common, and otherwise one.
func (p *partSelection) Part() (next informer.SelectionPart, ok bool) {
	part := p.missing()
	if all := part.alternatives(); len(all) > 1 && all.commonLabels().Empty() && all.commonFields().Empty() {
		part = selectorSetOf(all[:1])
	}
	return informer.SelectionPart{
		Tweak:  func(options *metav1.ListOptions) { p.tweak(options, part) },
		Has:    func(object runtime.Object) bool { return part.has(object) },
		Select: func() { p.grow(part) },
	}, !p.IsEmpty() && len(part) > 0
}

func (p *partSelection) tweak(request *metav1.ListOptions, selectors selectorSet) {
	options := p.informer.options
	options.AnyOf = selectors.alternatives()
	options.requestTweaker(p.informer.gvr)(request)
}

// selectorSet has selectors by their text. It is immutable.
type selectorSet map[string]Selector

// selectorSetOf returns the selectors that can match.
func selectorSetOf(selectors alternatives) selectorSet {
	s := selectorSet{}
	for _, selector := range selectors.possible() {
		s[selector.text()] = selector
	}
	return s
}

func (s selectorSet) alternatives() alternatives { return slices.Collect(maps.Values(s)) }

// has reports whether a selector selects an object. One without metadata is reported elsewhere.
func (s selectorSet) has(object any) bool {
	m, err := meta.Accessor(object)
	if err != nil {
		return true
	}
	objectLabels := labelsOf(object, m)
	for _, selector := range s {
		if selector.matches(objectLabels, selector.fieldRequirements(), m) {
			return true
		}
	}
	return false
}

// validate returns an error if the client cannot evaluate a field.
func (s selectorSet) validate() error {
	for _, selector := range s {
		for _, r := range selector.fieldRequirements() {
			if !isEvaluable(r) {
				return fmt.Errorf("Selectors: the client cannot evaluate the field %q: set it in FieldSelector", r.Field)
			}
		}
	}
	return nil
}

func (s selectorSet) or(other selectorSet) selectorSet {
	union := maps.Clone(s)
	maps.Copy(union, other)
	return union
}

func (s selectorSet) and(other selectorSet) selectorSet { return s.minus(s.minus(other)) }

func (s selectorSet) minus(other selectorSet) selectorSet {
	difference := selectorSet{}
	for text, selector := range s {
		if _, found := other[text]; !found {
			difference[text] = selector
		}
	}
	return difference
}
