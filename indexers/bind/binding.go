package bind

import (
	"cmp"
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
)

// Binding holds informers for the resources of a config. Create it with New.
type Binding struct {
	factory *dynamicinformer.Factory
	options Options

	changeLock sync.Mutex
	// types are the known types. It is written under both locks and read under either.
	types  map[schema.GroupResource]resourceType // nil before Follow or Resolve
	closed bool                                  // under changeLock

	// graph has the references between the targets; nil until the first call of References. It is written
	// under both locks and read under either. graphTargets are its sources, under changeLock.
	graph        *references.Graph
	graphTargets map[slotKey]graphSource

	mu struct {
		sync.Mutex
		config *indexers.Config
		// slots is replaced, never changed.
		slots map[slotKey]resourceBinding
	}
}

// resourceBinding binds a resource to a type.
type resourceBinding struct {
	serving *Target
	// replacement takes over when it has synced; nil if no change is pending.
	replacement *Target
}

// slotKey identifies a slot: several resources can match one type.
type slotKey struct {
	resource string
	schema.GroupResource
}

// ErrNoTypes is returned by Target and Querier before the first call of Follow or Resolve.
var ErrNoTypes = errors.New("bind: no types are known; call Follow or Resolve first")

// ErrClosed is returned by methods of a closed binding.
var ErrClosed = errors.New("bind: the binding has been closed")

// New binds a config to a factory. It follows nothing until Resolve or Follow provides types. It returns an
// error if options lack something that the config needs.
func New(factory *dynamicinformer.Factory, config *indexers.Config, options Options) (*Binding, error) {
	b := &Binding{factory: factory, options: options}
	b.mu.config, b.mu.slots = config, map[slotKey]resourceBinding{}
	return b, b.check(config)
}

// check validates a config before anything changes.
func (b *Binding) check(config *indexers.Config) error {
	var errs []error
	for _, r := range config.Resources {
		_, err := b.options.ResourceOptions(r)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// Resolve binds the resources of the config to the types of a catalog. A required resource without a type
// gives an *indexers.ConfigError; the other resources are bound nevertheless.
func (b *Binding) Resolve(catalog *discovery.Catalog) error {
	b.changeLock.Lock()
	defer b.changeLock.Unlock()
	b.setTypes(resourceTypesOf(catalog))
	if err := b.bindTypes(slices.Collect(maps.Values(b.types))...); err != nil {
		return err
	}
	return b.unresolvedError()
}

// Follow binds the resources of the config to the types of a running tracker: the known ones before it
// returns, which are all if the tracker has synced, and later ones when they appear. stop ends that and keeps
// existing bindings.
func (b *Binding) Follow(tracker *discovery.Tracker) (stop func()) {
	b.reportError(b.addTypes(resourceTypesOf(tracker.Snapshot().Catalog())...))
	return tracker.Subscribe(func(e discovery.Event) {
		if e.Action != discovery.Added && e.Action != discovery.Changed {
			return // informers handle removed types
		}
		b.reportError(b.addTypes(resourceTypeOf(e.Type)))
	}).Stop
}

func (b *Binding) reportError(err error) {
	if err != nil && b.options.OnError != nil {
		b.options.OnError(err)
	}
}

func (b *Binding) config() *indexers.Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.config
}

// addTypes stores new or changed types and binds their resources.
func (b *Binding) addTypes(types ...resourceType) error {
	b.changeLock.Lock()
	defer b.changeLock.Unlock()
	if b.closed {
		return nil // an event in flight
	}
	b.setTypes(types)
	return b.bindTypes(types...)
}

// setTypes stores types. Callers hold changeLock.
func (b *Binding) setTypes(types []resourceType) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.types == nil {
		b.types = map[schema.GroupResource]resourceType{}
	}
	for _, typ := range types {
		b.types[typ.GroupResource] = typ
	}
}

// bindTypes binds the config to types. Callers hold changeLock.
func (b *Binding) bindTypes(types ...resourceType) error {
	if b.closed {
		return ErrClosed
	}
	p := b.newPlan()
	var errs []error
	for _, typ := range types {
		for _, r := range b.config().Resources {
			errs = append(errs, b.bind(p, r, typ))
		}
	}
	b.commit(p, b.config())
	return errors.Join(errs...)
}

// publish makes a change visible. Callers hold changeLock.
func (b *Binding) publish(config *indexers.Config, slots map[slotKey]resourceBinding) {
	b.mu.Lock()
	b.mu.config, b.mu.slots = config, slots
	b.mu.Unlock()
	b.syncGraphSources()
}

// matches reports whether a resource matches a type in a served version.
func matches(r *indexers.Resource, typ resourceType) bool {
	_, served := typ.gvr(r.Match)
	return served && r.Match.Matches(typ.Group, typ.Resource, typ.kind)
}

func (b *Binding) cloneSlots() map[slotKey]resourceBinding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.mu.slots)
}

// unresolvedError returns an error for required resources without a known type. Callers hold changeLock.
func (b *Binding) unresolvedError() error {
	var diagnostics []indexers.Diagnostic
	for _, r := range b.config().Resources {
		if r.Optional || len(b.targetsOf(r.Name)) > 0 {
			continue
		}
		message := fmt.Sprintf("the server has no type that fits %s",
			schema.GroupResource{Group: r.Match.Group, Resource: r.Match.Resource + r.Match.Kind})
		hint := "install its CRD, correct the name, or write optional: true"
		for _, typ := range b.types {
			if r.Match.Matches(typ.Group, typ.Resource, typ.kind) {
				message = fmt.Sprintf("%s has no version %q with the verbs list and watch", typ.GroupResource,
					r.Match.Version)
				hint = "the versions with these verbs are " + strings.Join(typ.versions, ", ")
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
func (b *Binding) Config() *indexers.Config { return b.config() }

// Targets returns the bound targets, ordered by resource and type.
func (b *Binding) Targets() []*Target { return b.targetsOf("") }

// targetsOf returns the targets of a resource, or all for "".
func (b *Binding) targetsOf(resource string) []*Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*Target
	for key, s := range b.mu.slots {
		if resource == "" || key.resource == resource {
			out = append(out, s.serving)
		}
	}
	slices.SortFunc(out, func(x, y *Target) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
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
		return fmt.
			Sprintf("bind: resource %q: no such type is known yet; it is bound once its CRD is installed "+
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
	return query.New(&switchingSource{binding: b, target: t},
		t.Resource.Indexes...).WithReferences(b.typeGraph(t)), nil
}

// Target returns the target of a resource with exactly one type. The error is a *TargetError or ErrNoTypes.
func (b *Binding) Target(resource string) (*Target, error) {
	targets := b.targetsOf(resource)
	if len(targets) == 1 && resource != "" {
		return targets[0], nil
	}
	e := &TargetError{Resource: resource}
	for _, r := range b.config().Resources {
		e.Known = append(e.Known, r.Name)
	}
	for _, t := range targets {
		e.Types = append(e.Types, t.GVR)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.types == nil && slices.Contains(e.Known, resource) {
		return nil, ErrNoTypes
	}
	return nil, e
}

// Close releases all informers. The binding cannot be used afterwards.
func (b *Binding) Close() {
	b.changeLock.Lock()
	defer b.changeLock.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	if b.graph != nil {
		b.graph.Close()
	}
	for _, s := range b.cloneSlots() {
		s.serving.release()
		if s.replacement != nil {
			s.replacement.release()
		}
	}
}
