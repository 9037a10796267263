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

// Binding holds informers for what a config declares. Make it with New.
type Binding struct {
	factory *dynamicinformer.Factory
	options Options

	// work is held while informers are acquired and changed, so that this happens in turn.
	work sync.Mutex
	// kinds are the types that are known: written under both locks and read under either.
	kinds  map[schema.GroupResource]kind
	closed bool // under work

	// graph follows the references between the targets, which are its members; nil until somebody asks for
	// it. It is written under both locks and read under either; members are under work.
	graph   *references.Graph
	members map[place]membership

	mu struct {
		sync.Mutex
		config *indexers.Config
		// slots are replaced rather than changed.
		slots map[place]slot
	}
}

// slot is where a resource is bound to a type.
type slot struct {
	serving *Target
	// next takes its place when it has synced; nil when there is nothing to wait for.
	next *Target
}

// place tells targets apart: a type may be meant by several resources.
type place struct {
	resource string
	schema.GroupResource
}

// ErrClosed is returned for what a binding is asked after Close.
var ErrClosed = errors.New("bind: the binding has been closed")

// New binds a config to a factory. Nothing is followed before Resolve or Follow says which types there are.
// It fails when the options lack what the config asks for.
func New(factory *dynamicinformer.Factory, config *indexers.Config, options Options) (*Binding, error) {
	b := &Binding{factory: factory, options: options, kinds: map[schema.GroupResource]kind{}}
	b.mu.config, b.mu.slots = config, map[place]slot{}
	return b, b.check(config)
}

// check looks at what can be wrong with a config before anything is changed for it.
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

// Resolve binds what the config means among the types of a catalog. A resource without a type is an
// *indexers.ConfigError, unless it is optional; the others are bound all the same.
func (b *Binding) Resolve(catalog *discovery.Catalog) error {
	b.work.Lock()
	defer b.work.Unlock()
	b.know(kindsOf(catalog))
	if err := b.bindAll(slices.Collect(maps.Values(b.kinds))...); err != nil {
		return err
	}
	return b.unresolved()
}

// Follow binds what the config means among the types that a tracker knows: before it returns those of now,
// which are all once the tracker has synced, and then each that comes later. The returned func ends that;
// what is bound stays. The tracker must run.
func (b *Binding) Follow(tracker *discovery.Tracker) (stop func()) {
	b.report(b.learn(kindsOf(tracker.Snapshot().Catalog())...))
	return tracker.Subscribe(func(e discovery.Event) {
		if e.Kind != discovery.Added && e.Kind != discovery.Changed {
			return // the informers deal with types that go
		}
		b.report(b.learn(kindOf(e.Type)))
	}).Stop
}

func (b *Binding) report(err error) {
	if err != nil && b.options.OnError != nil {
		b.options.OnError(err)
	}
}

func (b *Binding) config() *indexers.Config {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.config
}

// learn binds what means types that are new, or have changed.
func (b *Binding) learn(kinds ...kind) error {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return nil // an event that was under way
	}
	b.know(kinds)
	return b.bindAll(kinds...)
}

// know keeps what is known of types. Callers hold work.
func (b *Binding) know(kinds []kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range kinds {
		b.kinds[k.GroupResource] = k
	}
}

// bindAll binds the config to types. Callers hold work.
func (b *Binding) bindAll(kinds ...kind) error {
	if b.closed {
		return ErrClosed
	}
	slots := b.cloneSlots()
	awaited := map[place]*Target{}
	var errs []error
	for _, k := range kinds {
		for _, r := range b.config().Resources {
			at := place{r.Name, k.GroupResource}
			t, err := b.missing(slots, r, k)
			errs = append(errs, err)
			if t != nil {
				slots[at] = slot{serving: t}
			}
			t, err = b.outdated(slots[at], r, k)
			errs = append(errs, err)
			if t != nil {
				if given := slots[at].next; given != nil {
					defer given.drop()
				}
				slots[at], awaited[at] = slot{slots[at].serving, t}, t
			}
		}
	}
	b.publish(b.config(), slots)
	for at, t := range awaited {
		go b.await(at, t) // ended by the sync, or by the end of the informer or of the claim to it
	}
	return errors.Join(errs...)
}

// outdated makes what is to take the place of a slot whose version is no longer served, where the config
// leaves the version open and another one is; else it gives nil.
func (b *Binding) outdated(s slot, r *indexers.Resource, k kind) (*Target, error) {
	if s.serving == nil || r.Match.Version != "" || r.Match.Versions != "" {
		return nil, nil
	}
	newest := s.serving
	if s.next != nil {
		newest = s.next
	}
	gvr, served := k.gvr(r.Match)
	if !served || slices.Contains(k.versions, newest.GVR.Version) {
		return nil, nil
	}
	return b.acquire(r, gvr)
}

// publish makes a change visible. Callers hold work.
func (b *Binding) publish(config *indexers.Config, slots map[place]slot) {
	b.mu.Lock()
	b.mu.config, b.mu.slots = config, slots
	b.mu.Unlock()
	b.followReferences()
}

// missing makes the target of a resource among objects of a type, if there should be one and is none yet;
// else it gives nil.
func (b *Binding) missing(slots map[place]slot, r *indexers.Resource, k kind) (*Target, error) {
	if _, ok := slots[place{r.Name, k.GroupResource}]; ok || !means(r, k) {
		return nil, nil
	}
	gvr, _ := k.gvr(r.Match)
	return b.acquire(r, gvr)
}

// means reports whether a resource means a type, in a version that it serves.
func means(r *indexers.Resource, k kind) bool {
	_, served := k.gvr(r.Match)
	return served && r.Match.Matches(k.Group, k.Resource, k.kind)
}

func (b *Binding) cloneSlots() map[place]slot {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.mu.slots)
}

// unresolved says which resources mean no type that is known. Callers hold work.
func (b *Binding) unresolved() error {
	var all []indexers.Diagnostic
	for _, r := range b.config().Resources {
		if r.Optional || len(b.targetsOf(r.Name)) > 0 {
			continue
		}
		message := fmt.Sprintf("the server has no type that fits %s",
			schema.GroupResource{Group: r.Match.Group, Resource: r.Match.Resource + r.Match.Kind})
		hint := "install its CRD, correct the name, or write optional: true"
		for _, k := range b.kinds {
			if r.Match.Matches(k.Group, k.Resource, k.kind) {
				message = fmt.Sprintf("%s cannot be listed and watched in version %q", k.GroupResource,
					r.Match.Version)
				hint = "the versions that can are " + strings.Join(k.versions, ", ")
			}
		}
		all = append(all, r.Finding(indexers.CodeNoResource, message, hint))
	}
	if len(all) > 0 {
		return &indexers.ConfigError{Diagnostics: all}
	}
	return nil
}

// Config returns the config that is bound. A target may still answer as the one before says, which its
// Resource is: see Pending.
func (b *Binding) Config() *indexers.Config { return b.config() }

// Targets returns what is bound, in the order of the names of resources, and of the types for one of them.
func (b *Binding) Targets() []*Target { return b.targetsOf("") }

// targetsOf returns the targets of a resource, or of all.
func (b *Binding) targetsOf(resource string) []*Target {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*Target
	for at, s := range b.mu.slots {
		if resource == "" || at.resource == resource {
			out = append(out, s.serving)
		}
	}
	slices.SortFunc(out, func(x, y *Target) int {
		return cmp.Or(strings.Compare(x.Resource.Name, y.Resource.Name),
			strings.Compare(x.GVR.Group, y.GVR.Group), strings.Compare(x.GVR.Resource, y.GVR.Resource))
	})
	return out
}

// TargetError says that a resource of the config does not stand for exactly one type.
type TargetError struct {
	// Resource is the name that was asked for.
	Resource string
	// Types are those that it stands for; none while no such type exists, or when the config has no such
	// name.
	Types []schema.GroupVersionResource
	// Known are the names that the config has.
	Known []string
}

// Error says what to do.
func (e *TargetError) Error() string {
	switch {
	case !slices.Contains(e.Known, e.Resource):
		return fmt.Sprintf("bind: the config has no resource %q; there are %s", e.Resource,
			strings.Join(e.Known, ", "))
	case len(e.Types) == 0:
		return fmt.Sprintf("bind: resource %q: no such type is known yet; it is bound once its CRD is installed and discovery has found it", e.Resource)
	}
	return fmt.Sprintf("bind: resource %q stands for %d types; ask each of its Targets",
		e.Resource, len(e.Types))
}

// Querier answers queries over a resource that stands for exactly one type: once References has been called,
// also about references. It may be kept: when another target takes the place of the one there is, with the
// same indexes at least, it answers from that one. The error is a *TargetError.
func (b *Binding) Querier(resource string) (*query.Querier, error) {
	t, err := b.Target(resource)
	if err != nil {
		return nil, err
	}
	return query.New(&following{binding: b, target: t}, t.Resource.Indexes...).WithReferences(b.view(t)), nil
}

// Target returns what a resource that stands for exactly one type is bound to. The error is a *TargetError.
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
	return nil, e
}

// Close releases all informers. The binding cannot be used again.
func (b *Binding) Close() {
	b.work.Lock()
	defer b.work.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	if b.graph != nil {
		b.graph.Close()
	}
	for _, s := range b.cloneSlots() {
		s.serving.drop()
		if s.next != nil {
			s.next.drop()
		}
	}
}
