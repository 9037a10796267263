package bind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// Apply replaces the config; see Update.
func (b *Binding) Apply(config *indexers.Config) error {
	return b.Update(context.Background(), Settings{Config: config})
}

// Update replaces the settings atomically: an error changes nothing. It returns when new indexes have been
// computed, or with an error when ctx or the binding ends. Queries continue meanwhile. Do not call it from
// functions of the options.
//
// If only the indexes of a target differ, its informer and handlers continue. If its informer options differ,
// a new informer replaces the old one once it has synced. Until then the old one answers with the old
// settings, and Pending returns the waiting change with its reason.
func (b *Binding) Update(ctx context.Context, settings Settings) error {
	completed, err := settings.complete(b.options)
	if err != nil {
		return err
	}
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.ctx, func() { cancel(context.Cause(b.ctx)) })()
	if current := b.settings(); (settings.Selection == nil) != (current.Selection == nil) {
		return errors.New("bind: a binding has a Settings.Selection always or never")
	}
	p := b.newPlan(completed)
	p.isAtomic = true
	for _, key := range sortedKeys(p.desired) {
		if err := b.prepare(ctx, p, key); err != nil {
			for _, undo := range slices.Backward(p.onAbandon) {
				undo()
			}
			return fmt.Errorf("bind: %s: %w", p.desired[key].name, err)
		}
	}
	b.commit(p)
	return nil
}

// reconcile brings the targets to the desired state, with the types of a catalog if it is not nil. The error
// joins the errors of targets that cannot be bound.
func (b *Binding) reconcile(catalog *discovery.Catalog) error {
	if err := b.lock(b.ctx); err != nil {
		return err
	}
	defer b.unlock()
	if catalog != nil {
		if catalog == b.catalog {
			return nil
		}
		b.setCatalog(catalog)
	}
	p := b.newPlan(b.settings())
	var errs []error
	for _, key := range sortedKeys(p.desired) {
		if err := b.prepare(b.ctx, p, key); err != nil {
			p.problems[p.desired[key].name] = err
			errs = append(errs, fmt.Errorf("bind: %s: %w", p.desired[key].name, err))
		}
	}
	b.commit(p)
	return errors.Join(errs...)
}

// lock begins a change of the targets. It returns an error if ctx or the binding has ended.
func (b *Binding) lock(ctx context.Context) error {
	select {
	case b.changing <- struct{}{}:
		if b.ctx.Err() == nil {
			return nil
		}
		b.unlock()
		return context.Cause(b.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *Binding) unlock() { <-b.changing }

// plan is a prepared change of a binding.
type plan struct {
	settings *Settings
	desired  map[slotKey]desiredTarget
	slots    map[slotKey]slot
	problems map[string]error
	// isAtomic is set if an index above a limit refuses the plan. Otherwise its target is bound without it.
	isAtomic bool
	// onAbandon and onCommit run when the change is abandoned or committed.
	onAbandon, onCommit []func()
}

// newPlan returns a plan without the slots that are no longer desired.
func (b *Binding) newPlan(settings *Settings) *plan {
	p := &plan{settings: settings, slots: maps.Clone(b.slots()), problems: map[string]error{}}
	p.desired = b.desired(settings, p.problems)
	maps.DeleteFunc(p.slots, func(key slotKey, _ slot) bool { _, ok := p.desired[key]; return !ok })
	return p
}

// prepare plans the first target of a slot, other indexes, or a replacement. An error changes nothing.
func (b *Binding) prepare(ctx context.Context, p *plan, key slotKey) error {
	d, current := p.desired[key], p.slots[key]
	newest := current.newestTarget()
	isCurrent := newest != nil && newest.settings == p.settings && newest.GVR == d.typ.GVR
	if isCurrent && (newest.schema == nil || newest.schema == b.schemas.of(ctx, d.typ)) {
		p.slots[key] = p.settle(current)
		return nil
	}
	resource, err := b.resourceOf(ctx, p.settings, d)
	if err == nil && isCurrent && resource.equals(newest.boundResource) {
		newest.schema = resource.schema // another schema with the same results
		p.slots[key] = p.settle(current)
		return nil
	}
	var t *Target
	if err == nil {
		t, err = b.acquire(ctx, p, key, resource)
	}
	switch {
	case err != nil:
		return err
	case current.serving == nil || current.serving.Informer == t.Informer:
		current = slot{serving: t}
	default:
		current.replacement = t
	}
	p.slots[key] = p.settle(current)
	return nil
}

// settle returns a slot in which a recent replacement serves, without indexes that exceeded a limit.
func (p *plan) settle(s slot) slot {
	if s.replacement != nil && s.replacement.view.isRecent.Load() {
		s = slot{serving: s.replacement}
	}
	if refusals := s.serving.view.Refusals(); len(refusals) > 0 {
		t := *s.serving
		for _, name := range slices.Sorted(maps.Keys(refusals)) {
			t.refusals = append(slices.Clip(t.refusals),
				fmt.Errorf("cached without the index %q: %w", name, refusals[name]))
		}
		var drop func()
		t.view, drop = t.view.WithoutRefused()
		p.onCommit = append(p.onCommit, drop)
		s.serving = &t
	}
	if len(s.serving.refusals) > 0 {
		p.problems[s.serving.Type.String()] = errors.Join(s.serving.refusals...)
	}
	return s
}

// commit applies a prepared change. It cannot fail. Callers hold changing.
func (b *Binding) commit(p *plan) {
	old := b.slots()
	b.mu.Lock()
	oldProblems := b.mu.problems
	b.mu.settings, b.mu.slots, b.mu.problems = p.settings, p.slots, p.problems
	b.mu.reconciled = b.mu.reconciled || b.catalog != nil
	b.mu.Unlock()
	b.syncGraphSources()
	b.reconcileAgain()
	changed := maps.Clone(old)
	maps.Copy(changed, p.slots)
	for _, key := range sortedKeys(changed) {
		if before, after := old[key].serving, p.slots[key].serving; before != after {
			b.options.OnChange(before, after)
		}
	}
	for _, f := range p.onCommit {
		f()
	}
	for key := range changed {
		b.replaceViews(old[key].targets(), p.slots[key].targets())
	}
	for _, name := range slices.Sorted(maps.Keys(p.problems)) {
		if before := oldProblems[name]; before == nil || before.Error() != p.problems[name].Error() {
			b.options.OnProblem(name, p.problems[name])
		}
	}
}

// replaceViews releases the informers of the old targets of a slot that the new ones do not use, and awaits
// the sync of new views.
func (b *Binding) replaceViews(old, targets []*Target) {
	for _, t := range old {
		if !slices.ContainsFunc(targets, func(x *Target) bool { return x.view.handle == t.view.handle }) {
			t.view.Release()
		}
	}
	for i, t := range targets {
		if !slices.ContainsFunc(old, func(x *Target) bool { return x.view == t.view }) {
			go b.endFirstList(t.view, targets[:i]) // ends with the sync, or the end of the informer or view
		}
	}
}

// endFirstList ends the limits of a view when it has synced, and reconciles if that changes the slot.
// replaced has the target that the view will replace, if any.
func (b *Binding) endFirstList(view *View, replaced []*Target) {
	select {
	case <-view.Informer().Synced():
		view.EndBuild()
		for _, t := range replaced {
			view.awaitRecent(t.Informer)
		}
		if len(replaced) > 0 || len(view.Refusals()) > 0 {
			_ = b.reconcile(nil) // OnProblem reports the errors
		}
	case <-view.Informer().Stopped():
	case <-view.ctx.Done():
	}
}

// awaitRecent waits until the informer is as recent as the one that it replaces, so that reads do not go back
// in time. Versions that are lost or cannot be compared do not delay it.
func (v *View) awaitRecent(replaced *dynamicinformer.Informer) {
	for err := error(new(dynamicinformer.NotSyncedError)); err != nil && v.ctx.Err() == nil; {
		_, changed := v.informer.StatusChange()
		err = dynamicinformer.MoveHandlers(v.ctx, func() { v.isRecent.Store(true) },
			&dynamicinformer.HandlerMove{From: []*dynamicinformer.Informer{replaced},
				To: []*dynamicinformer.Informer{v.informer}})
		if errors.Is(err, dynamicinformer.ErrVersionLost) || errors.Is(err, dynamicinformer.ErrNotStored) {
			v.isRecent.Store(true)
			return
		}
		if _, failed := errors.AsType[*dynamicinformer.NotSyncedError](err); failed {
			select {
			case <-changed:
			case <-v.ctx.Done():
			}
		}
	}
}

func sortedKeys[T any](slots map[slotKey]T) []slotKey {
	return slices.SortedFunc(maps.Keys(slots), func(x, y slotKey) int {
		return cmp.Or(strings.Compare(x.resource, y.resource), strings.Compare(x.Group, y.Group),
			strings.Compare(x.Resource, y.Resource))
	})
}
