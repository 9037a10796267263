package bind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// Binding holds informers for the resources of a config. Create it with Run, New or NewWithSettings.
type Binding struct {
	factory *dynamicinformer.Factory
	options Options
	ctx     context.Context // ended by Close and Follow
	end     context.CancelCauseFunc

	// changing is held while the targets change. The next fields are written with it and under mu.
	changing chan struct{}
	catalog  *discovery.Catalog                            // nil before Run, Follow or Resolve
	types    map[schema.GroupResource][]discovery.Resource // with the versions that can be listed
	graph    *references.Graph                             // nil until the first call of References
	// graphTargets are the sources of graph, with changing.
	graphTargets map[slotKey]graphSource
	// schemas belong to the expressions that need one, with changing.
	schemas schemas

	mu struct {
		sync.Mutex
		settings *Settings
		slots    map[slotKey]slot // replaced, never changed
		problems map[string]error
		// reconciled is set after the first reconciliation with a catalog.
		reconciled bool
	}
}

type slot struct {
	serving *Target
	// replacement takes over when it has synced; nil if no change is pending.
	replacement *Target
}

func (s slot) newestTarget() *Target { return cmp.Or(s.replacement, s.serving) }

func (s slot) targets() []*Target {
	return slices.DeleteFunc([]*Target{s.serving, s.replacement}, func(t *Target) bool { return t == nil })
}

// slotKey identifies a slot: several resources can match one type. The resource is "" with
// Settings.Selection.
type slotKey struct {
	resource string
	schema.GroupResource
}

// ErrNoTypes is returned by Target and Querier before the first call of Run, Follow or Resolve.
var ErrNoTypes = errors.New("bind: no types are known; call Run, Follow or Resolve first")

// ErrClosed is returned by methods of a closed binding.
var ErrClosed = errors.New("bind: the binding has been closed")

// New binds a config to a factory. It follows nothing until Run, Follow or Resolve provides types. It returns
// an error if options lack something that the config needs.
func New(factory *dynamicinformer.Factory, config *indexers.Config, options Options) (*Binding, error) {
	return NewWithSettings(factory, Settings{Config: config}, options)
}

// NewWithSettings works like New for settings.
func NewWithSettings(factory *dynamicinformer.Factory, settings Settings, options Options) (*Binding, error) {
	options.complete()
	completed, err := settings.complete(options)
	b := &Binding{factory: factory, options: options, changing: make(chan struct{}, 1),
		schemas: schemas{read: options.Schema, byType: map[schema.GroupVersionResource]*typeSchema{}}}
	b.ctx, b.end = context.WithCancelCause(context.Background())
	b.mu.settings, b.mu.slots = completed, map[slotKey]slot{}
	return b, err
}

// Resolve binds the resources of the config to the types of a catalog. A required resource without a type
// gives an *indexers.ConfigError; the other resources are bound nevertheless.
func (b *Binding) Resolve(catalog *discovery.Catalog) error {
	if err := b.reconcile(catalog); err != nil {
		return err
	}
	return b.unresolvedError()
}

// Follow binds to the types of a running tracker: the known ones before it returns, which are all if the
// tracker has synced, and later ones when they appear. stop ends that and keeps the targets.
func (b *Binding) Follow(tracker *discovery.Tracker) (stop func()) {
	b.changing <- struct{}{}
	if b.schemas.read == nil {
		b.schemas.read = tracker.Schema
		clear(b.schemas.byType)
	}
	b.unlock()
	_ = b.reconcile(tracker.Snapshot().Catalog()) // OnProblem reports the errors
	return tracker.Subscribe(func(discovery.Event) { _ = b.reconcile(tracker.Snapshot().Catalog()) }).Stop
}

// Run follows a running tracker when it has synced, until ctx ends. Then the targets do not change any more,
// and the computation of indexes ends. Close releases them.
func (b *Binding) Run(ctx context.Context, tracker *discovery.Tracker) {
	stop := context.AfterFunc(ctx, func() { b.end(ErrClosed) })
	defer stop()
	if tracker.WaitForSync(ctx) == nil {
		defer b.Follow(tracker)()
		<-ctx.Done()
	}
	b.end(ErrClosed)
	b.changing <- struct{}{} // wait for the last change
	defer b.unlock()
	for _, s := range b.slots() {
		for _, t := range s.targets() {
			if !t.Informer.HasSynced() {
				t.view.Refuse(ErrClosed)
			}
		}
	}
}

func (b *Binding) slots() map[slotKey]slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.slots
}

// unresolvedError returns an error for required resources without a known type.
func (b *Binding) unresolvedError() error {
	var diagnostics []indexers.Diagnostic
	b.mu.Lock()
	types := b.types
	b.mu.Unlock()
	for _, r := range b.Config().Resources {
		if r.Optional || len(b.targetsOf(r.Name)) > 0 {
			continue
		}
		message := fmt.Sprintf("the server has no type that fits %s",
			schema.GroupResource{Group: r.Match.Group, Resource: r.Match.Resource + r.Match.Kind})
		hint := "install its CRD, correct the name, or write optional: true"
		for gr, versions := range types {
			if len(versions) > 0 && r.Match.Matches(gr.Group, gr.Resource, versions[0].GVK.Kind) {
				names := naming.Texts(versions, func(t discovery.Resource) string { return t.GVR.Version })
				message = fmt.Sprintf("%s has no version %q with the verbs list and watch", gr, r.Match.Version)
				hint = "the versions with these verbs are " + strings.Join(names, ", ")
			}
		}
		diagnostics = append(diagnostics, r.Finding("E304", message, hint))
	}
	if len(diagnostics) > 0 {
		return &indexers.ConfigError{Diagnostics: diagnostics}
	}
	return nil
}

// Config returns the current config. A target with a pending change still has the previous one, which is its
// Resource.
func (b *Binding) Config() *indexers.Config { return b.settings().Config }

func (b *Binding) settings() *Settings {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.settings
}

// Problems returns an error for each name without a type, and each type that is not bound or lacks indexes.
func (b *Binding) Problems() map[string]error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.mu.problems)
}

// Reconciled reports whether the types of the cluster are known, so that Targets is complete.
func (b *Binding) Reconciled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.reconciled
}

// Targets returns the bound targets, ordered by resource and type.
func (b *Binding) Targets() []*Target { return b.targetsOf("") }

// targetsOf returns the targets of a resource, or all for "".
func (b *Binding) targetsOf(resource string) []*Target {
	slots := b.slots()
	var out []*Target
	for _, key := range sortedKeys(slots) {
		if resource == "" || key.resource == resource {
			out = append(out, slots[key].serving)
		}
	}
	return out
}

// Type returns the target of a type with Settings.Selection, or nil.
func (b *Binding) Type(gr schema.GroupResource) *Target { return b.slots()[slotKey{"", gr}].serving }

// MetricSources returns the metrics of the config with the caches of their types, for indexers.ReadMetrics.
// The content of the caches is immutable.
func (b *Binding) MetricSources() []indexers.MetricSource {
	for targets := b.Targets(); ; {
		var sources []indexers.MetricSource
		for _, t := range targets {
			if len(t.Resource.Metrics) > 0 {
				sources = append(sources, query.MetricSource(t.GVR, t.Resource.Metrics, t.view.Snapshot()))
			}
		}
		current := b.Targets()
		// If the targets changed, one may have lost its indexes before its snapshot.
		if slices.Equal(current, targets) {
			return sources
		}
		targets = current
	}
}

// TargetError is returned for a resource that does not match exactly one type.
type TargetError struct {
	// Resource is the requested name.
	Resource string
	// Types are the matching types; empty if none exists, or if the config has no such resource.
	Types []schema.GroupVersionResource
	// Known are the names of the config's resources.
	Known []string
}

// Error returns the cause and the remedy.
func (e *TargetError) Error() string {
	switch {
	case !slices.Contains(e.Known, e.Resource):
		return fmt.Sprintf("bind: the config has no resource %q; there are %s", e.Resource,
			strings.Join(e.Known, ", "))
	case len(e.Types) == 0:
		return fmt.Sprintf("bind: resource %q: no such type is known yet; it is bound once its CRD is installed "+
			"and discovery has found it", e.Resource)
	}
	return fmt.Sprintf("bind: resource %q matches %d types; query each of its Targets",
		e.Resource, len(e.Types))
}

// Querier answers queries over a resource with exactly one type, including conditions about references once
// References has been called. It stays valid when another target with at least the same indexes takes over.
// The error is a *TargetError or ErrNoTypes.
func (b *Binding) Querier(resource string) (*query.Querier, error) {
	t, err := b.Target(resource)
	if err != nil {
		return nil, err
	}
	return t.Querier().WithReferences(b.typeGraph(t)), nil
}

// Target returns the target of a resource with exactly one type. The error is a *TargetError or ErrNoTypes.
func (b *Binding) Target(resource string) (*Target, error) {
	targets := b.targetsOf(resource)
	if len(targets) == 1 && resource != "" {
		return targets[0], nil
	}
	known := naming.Texts(b.Config().Resources, func(r *indexers.Resource) string { return r.Name })
	types := naming.Map(targets, func(t *Target) schema.GroupVersionResource { return t.GVR })
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.catalog == nil && slices.Contains(known, resource) {
		return nil, ErrNoTypes
	}
	return nil, &TargetError{Resource: resource, Types: types, Known: known}
}

// Close releases all informers. The binding cannot be used afterwards.
func (b *Binding) Close() {
	b.end(ErrClosed)
	b.changing <- struct{}{}
	defer b.unlock()
	if b.graph != nil {
		b.graph.Close()
	}
	b.mu.Lock()
	closed := b.mu.slots
	b.mu.slots = map[slotKey]slot{}
	b.mu.Unlock()
	for _, s := range closed {
		b.replaceViews(s.targets(), nil)
	}
}
