package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// settingsUpdate is a call of Update. result has a buffer.
type settingsUpdate struct {
	ctx      context.Context
	settings Settings
	result   chan error
}

// Update replaces the settings while Run runs. It prepares the caches of all types first, and an error
// changes nothing. It blocks until the settings are in effect: until the types of the cluster are known, and
// new indexes have been computed. The end of ctx or of Run ends the computation. Queries continue meanwhile.
// Do not call it from functions of the options.
//
// If only the indexes of a type differ, its informer and handlers continue, and running queries use the
// indexes with which they began. Watches continue unless they use indexes and one has changed: then other
// objects match, so they end with an error 410. If informer options differ, a new informer replaces the old
// one when it has synced. Until then the old one answers with its indexes; see CachedType.Replacement. If
// fields are dropped, all watches of the type end with an error 410.
func (r *Reconciler) Update(ctx context.Context, settings Settings) error {
	if err := settings.complete(); err != nil {
		return err
	}
	u := settingsUpdate{ctx, settings, make(chan error, 1)}
	select {
	case r.updates <- u:
		return <-u.result
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.runEnded:
		return errReconcilerEnded
	}
}

var errReconcilerEnded = errors.New("live: the reconciler has ended")

// servedType is a type with its current cache, and its replacement, which takes over when its informer has
// synced.
type servedType struct {
	serving     CachedType
	replacement *CachedType
}

func (t servedType) export() CachedType {
	exported := t.serving
	if t.replacement != nil {
		exported.Replacement = t.replacement.Informer
	}
	return exported
}

// views returns the views that the type needs.
func (t servedType) views() []*bind.View {
	if t.replacement == nil {
		return []*bind.View{t.serving.view}
	}
	return []*bind.View{t.serving.view, t.replacement.view}
}

// isFor reports whether the type is served in this version and scope.
func (t servedType) isFor(resource discovery.Resource) bool {
	return t.serving.GVR == resource.GVR && t.serving.Scope == resource.Scope
}

// plan is a prepared change of the served types.
type plan struct {
	types    map[schema.GroupResource]servedType
	problems map[string]error
	// onAbandon and onCommit run when the change is abandoned or committed.
	onAbandon, onCommit []func()
}

// reconcile serves exactly the selected types of the cluster. It returns true if discovery failed for some
// types.
func (r *Reconciler) reconcile(ctx context.Context) (discoveryFailed bool) {
	desired, problems, discoveryFailed := r.desiredTypes(r.settings)
	p := &plan{types: map[schema.GroupResource]servedType{}, problems: problems}
	for gr, resource := range desired {
		current, exists := r.served()[gr]
		if exists && current.isFor(resource) {
			p.types[gr] = p.withoutRefusedIndexes(current.withSyncedReplacement())
		} else if err := r.prepare(ctx, p, r.settings, resource); err != nil {
			problems[resource.String()] = err
		}
	}
	r.commit(p)
	return discoveryFailed
}

// withSyncedReplacement returns the type with its replacement in use if that has synced.
func (t servedType) withSyncedReplacement() servedType {
	if t.replacement != nil && t.replacement.Informer.HasSynced() {
		return servedType{serving: *t.replacement}
	}
	return t
}

// withoutRefusedIndexes returns the type without the indexes that exceeded a limit in the first list, and
// reports why.
func (p *plan) withoutRefusedIndexes(t servedType) servedType {
	for name, reason := range t.serving.view.Refusals() {
		t.serving.refusals = append(slices.Clip(t.serving.refusals),
			fmt.Errorf("cached without the index %q: %w", name, reason))
	}
	if len(t.serving.view.Refusals()) > 0 {
		view, drop := t.serving.view.WithoutRefused()
		t.serving.view, t.serving.Indexes = view, view.Declared()
		p.onCommit = append(p.onCommit, drop)
	}
	if len(t.serving.refusals) > 0 {
		p.problems[t.serving.Resource.String()] = errors.Join(t.serving.refusals...)
	}
	return t
}

// update implements Update. It ends with the context of Update, or with runCtx.
func (r *Reconciler) update(runCtx context.Context, update settingsUpdate) (discoveryFailed bool, err error) {
	ctx, cancel := context.WithCancel(update.ctx)
	defer cancel()
	defer context.AfterFunc(runCtx, cancel)()
	settings := update.settings
	desired, problems, discoveryFailed := r.desiredTypes(settings)
	p := &plan{types: map[schema.GroupResource]servedType{}, problems: problems}
	for _, gr := range sortedTypes(desired) {
		if err := r.prepare(ctx, p, settings, desired[gr]); err != nil {
			for _, undo := range slices.Backward(p.onAbandon) {
				undo()
			}
			return false, fmt.Errorf("cache %s: %w", desired[gr], err)
		}
	}
	r.settings = settings
	r.commit(p)
	return discoveryFailed, nil
}

// prepare acquires the informer of a type and adds its indexes. An error leaves the plan unchanged.
func (r *Reconciler) prepare(ctx context.Context, p *plan, settings Settings,
	resource discovery.Resource) error {
	options, indexes, err := settings.InformerOptions(resource)
	if err != nil {
		return err
	}
	target := CachedType{Resource: resource, Indexes: indexes, References: settings.References(resource),
		metrics: settings.Metrics(resource)}
	cacheIndexes := slices.Clone(indexes)
	for _, m := range target.metrics {
		if !slices.ContainsFunc(cacheIndexes, m.Index.Same) {
			cacheIndexes = append(cacheIndexes, m.Index)
		}
	}
	options.Indexes = nil
	handle, err := r.options.Server.options.Factory.Acquire(resource.GVR, options)
	if err != nil {
		return err
	}
	target.Informer = handle.Informer()
	err = target.Informer.KeepHistory(r.options.Server.options.History)
	if field := r.options.Server.droppedSelectableField(target.Informer); err == nil && field != "" {
		err = fmt.Errorf("keep or prune drops %s, which clients can use in field selectors: add it to keep.paths, or remove it from prune", field)
	}
	if err != nil {
		handle.Release()
		return err
	}
	gr := resource.GVR.GroupResource()
	current := r.served()[gr]
	switch {
	case target.Informer == current.serving.Informer:
		target.cache = current.serving.cache
		err = p.reindex(ctx, settings.BuildLimits, &target, current.serving.view, cacheIndexes)
		handle.Release() // the view has one
	case current.replacement != nil && target.Informer == current.replacement.Informer:
		err = p.reindex(ctx, settings.BuildLimits, &target, current.replacement.view, cacheIndexes)
		handle.Release() // the view has one
	default:
		if target.view, err = bind.NewView(ctx, settings.BuildLimits, handle, "", cacheIndexes,
			indexes); err != nil {
			handle.Release()
			break
		}
		p.onAbandon = append(p.onAbandon, target.view.Release)
	}
	switch {
	case err != nil:
		return err
	case current.isFor(resource) && target.Informer != current.serving.Informer:
		p.types[gr] = servedType{current.serving, &target}.withSyncedReplacement()
	default:
		p.types[gr] = servedType{serving: target}
	}
	return nil
}

// reindex sets the view of a type to another view with its indexes.
func (p *plan) reindex(ctx context.Context, limits indexers.BuildLimits, target *CachedType, view *bind.View,
	cacheIndexes []*indexers.Index) error {
	view, undo, dropRemoved, err := view.Reindexed(ctx, limits, cacheIndexes, target.Indexes)
	if err != nil {
		return err
	}
	target.view = view
	p.onAbandon, p.onCommit = append(p.onAbandon, undo), append(p.onCommit, dropRemoved)
	return nil
}

// commit applies a plan. It cannot fail.
func (r *Reconciler) commit(p *plan) {
	oldTypes, server := r.served(), r.options.Server
	usedInformers := map[*dynamicinformer.Informer]bool{}
	for gr, t := range p.types {
		for i, view := range t.views() {
			usedInformers[view.Informer()] = true
			if !slices.Contains(oldTypes[gr].views(), view) {
				go r.endFirstList(view, i > 0) // ends with the sync or the end of the informer
			}
		}
		if t.serving.cache == nil {
			t.serving.cache = server.addView(t.serving.view)
			p.types[gr] = t
		}
		t.serving.cache.setView(t.serving.view)
	}
	r.mu.Lock()
	oldProblems := r.mu.problems
	r.mu.types, r.mu.problems, r.mu.reconciled = p.types, p.problems, true
	r.mu.Unlock()
	for _, f := range p.onCommit {
		f()
	}
	for _, gr := range sortedTypes(oldTypes) {
		if _, exists := p.types[gr]; !exists {
			server.RemoveType(gr)
		}
		for _, view := range oldTypes[gr].views() {
			if !usedInformers[view.Informer()] {
				view.Release()
			}
		}
		if !p.types[gr].isFor(oldTypes[gr].serving.Resource) {
			r.options.OnDropped(oldTypes[gr].serving.Resource)
		}
	}
	for _, gr := range sortedTypes(p.types) {
		if resource := p.types[gr].serving.Resource; !oldTypes[gr].isFor(resource) {
			r.options.OnServed(resource)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.problems)) {
		if old := oldProblems[name]; old == nil || old.Error() != p.problems[name].Error() {
			r.options.OnRejected(name, p.problems[name])
		}
	}
}

func sortedTypes[T any](types map[schema.GroupResource]T) []schema.GroupResource {
	return slices.SortedFunc(maps.Keys(types),
		func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
}

// endFirstList ends the limits on the indexes of a view when its informer has synced, and requests a
// reconciliation if that changes the type.
func (r *Reconciler) endFirstList(view *bind.View, isReplacement bool) {
	select {
	case <-view.Informer().Synced():
		view.EndBuild()
		if isReplacement || len(view.Refusals()) > 0 {
			r.wake()
		}
	case <-view.Informer().Stopped():
	}
}

// refuseUnsynced ends the computation of indexes in first lists.
func (r *Reconciler) refuseUnsynced() {
	for _, t := range r.served() {
		for _, view := range t.views() {
			if !view.Informer().HasSynced() {
				view.Refuse(errReconcilerEnded)
			}
		}
	}
}

// desiredTypes returns the selected cacheable types, and the errors for other selected names. discoveryFailed
// is true if discovery failed for some selected types.
func (r *Reconciler) desiredTypes(settings Settings) (types map[schema.GroupResource]discovery.Resource,
	problems map[string]error, discoveryFailed bool) {
	types = map[schema.GroupResource]discovery.Resource{}
	selected, problems := settings.Selection.Types(r.options.Tracker.Snapshot().Catalog())
	for _, s := range selected {
		gr := s.GVR.GroupResource()
		err := settings.Exclude(s.Resource)
		// A pattern selects only types that cost no polls.
		if err == nil && !s.Watchable() && (s.FromPattern || !s.HasVerbs("list")) {
			err = fmt.Errorf("%s %s", s.Resource, s.MissingVerbs("list", "watch"))
		}
		_, served := r.Type(gr)
		switch {
		case err != nil && !s.FromPattern:
			problems[s.Name] = err
		case err != nil:
		case s.FromPattern && s.Stale && s.CRDUID == "" && !served:
			discoveryFailed = true
		default:
			types[gr] = s.Resource
		}
	}
	return types, problems, discoveryFailed
}
