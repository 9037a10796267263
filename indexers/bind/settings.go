package bind

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// Settings are the desired state of a Binding. The functions must always return the same result for the same
// arguments.
type Settings struct {
	// Config has the resources. Default: none.
	Config *indexers.Config
	// Selection selects types. Each selected type has one target with the settings and declarations of all
	// resources that match it, see [indexers.Config.ResourceOf]. Default: each resource has a target for each
	// type that it matches.
	Selection *discovery.Selection
	// Exclude returns an error to skip a selected type. Types that match a pattern or category are skipped
	// silently. Optional.
	Exclude func(discovery.Resource) error
	// Namespace limits namespaced types further. Default: no limit.
	Namespace string
	// BuildLimits limit new indexes. An update with costly indexes fails; a new target is bound without them,
	// see Problems. Default: none.
	BuildLimits indexers.BuildLimits
}

// complete sets the defaults. It returns an error if options lack something that the config needs.
func (s Settings) complete(o Options) (*Settings, error) {
	if s.Config == nil {
		s.Config = &indexers.Config{}
	}
	if s.Exclude == nil {
		s.Exclude = func(discovery.Resource) error { return nil }
	}
	var errs []error
	for _, r := range s.Config.Resources {
		_, err := o.ResourceOptions(r)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	return &s, nil
}

// desiredTarget is the target content of a slot.
type desiredTarget struct {
	typ discovery.Resource
	// resource is nil for a type of Settings.Selection. Its resource is ResourceOf the config.
	resource *indexers.Resource
	// name is the name of the problems of the target.
	name string
}

// ResourceOf returns the resource of a type, limited to Namespace: that of Config.ResourceOf.
func (s Settings) ResourceOf(typ discovery.Resource, names ...string) (*indexers.Resource, error) {
	r, err := s.Config.ResourceOf(typ.GVR, typ.GVK.Kind, names...)
	if err != nil {
		return nil, err
	}
	return s.limit(r, typ)
}

// limit returns a resource in Namespace.
func (s Settings) limit(r *indexers.Resource, typ discovery.Resource) (*indexers.Resource, error) {
	switch isNamespaced := typ.Scope == discovery.Namespaced; {
	case !r.Namespaces.All() && !isNamespaced:
		return nil, fmt.Errorf("resource %q: namespaces: the objects of %s have no namespaces: remove namespaces",
			r.Name, typ)
	case s.Namespace == "" || !isNamespaced:
		return r, nil
	case !r.Namespaces.Matches(s.Namespace):
		return nil, fmt.Errorf("resource %q: namespaces: they do not select the namespace %s", r.Name,
			s.Namespace)
	}
	limited := *r
	limited.Namespaces = indexers.Namespaces{Include: []string{s.Namespace}}
	return &limited, nil
}

// desired returns the desired targets. It adds an error to problems for each name without a target.
func (b *Binding) desired(s *Settings, problems map[string]error) map[slotKey]desiredTarget {
	targets := map[slotKey]desiredTarget{}
	if s.Selection != nil && b.catalog != nil {
		b.addSelected(targets, s, problems)
		return targets
	}
	slots := b.slots()
	for gr, versions := range b.types {
		for _, r := range s.Config.Resources {
			key := slotKey{r.Name, gr}
			if typ, ok := versionFor(r.Match, versions, slots[key].newestTarget()); ok {
				targets[key] = desiredTarget{typ, r, r.Name + ", " + typ.String()}
			}
		}
	}
	return targets
}

// addSelected adds the cacheable types of the selection.
func (b *Binding) addSelected(targets map[slotKey]desiredTarget, s *Settings, problems map[string]error) {
	selected, absent := s.Selection.Types(b.catalog)
	maps.Copy(problems, absent)
	slots := b.slots()
	for _, typ := range selected {
		key := slotKey{"", typ.GVR.GroupResource()}
		err := s.Exclude(typ.Resource)
		// A pattern selects only types that cost no polls.
		if err == nil && !typ.Watchable() && (typ.FromPattern || !typ.HasVerbs("list")) {
			err = fmt.Errorf("%s %s", typ.Resource, typ.MissingVerbs("list", "watch"))
		}
		switch {
		case err != nil && !typ.FromPattern:
			problems[typ.Name] = err
		case err != nil:
		case typ.FromPattern && typ.Stale && typ.CRDUID == "" && slots[key].serving == nil:
			// The tracker notifies when discovery of the type recovers.
		default:
			targets[key] = desiredTarget{typ: typ.Resource, name: typ.Resource.String()}
		}
	}
}

// versionFor returns the version of a type that a match selects: the current one while it is served. It
// returns false if the match selects none.
func versionFor(m indexers.Match, versions []discovery.Resource,
	current *Target) (found discovery.Resource, ok bool) {
	for _, typ := range versions {
		if m.MatchesVersion(typ.GVR, typ.GVK.Kind) && (!ok || current != nil && current.GVR == typ.GVR) {
			found, ok = typ, true
		}
	}
	return found, ok
}

// setCatalog stores the types of a catalog. Types that are not in it stay known, and their informers handle
// the removal. Callers hold changing.
func (b *Binding) setCatalog(catalog *discovery.Catalog) {
	types := map[schema.GroupResource][]discovery.Resource{}
	for _, preferred := range catalog.Resources() {
		if !preferred.Preferred {
			continue // one of the versions is enough
		}
		gr := preferred.GVR.GroupResource()
		// Versions that can be watched are first, because informers poll the others.
		var watched, polled []discovery.Resource
		for _, version := range preferred.ServedVersions {
			switch typ, _ := catalog.Lookup(gr.WithVersion(version)); {
			case !typ.HasVerbs("list"):
			case typ.Watchable():
				watched = append(watched, typ)
			default:
				polled = append(polled, typ)
			}
		}
		types[gr] = append(watched, polled...)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for gr, known := range b.types {
		if _, ok := types[gr]; !ok {
			types[gr] = known
		}
	}
	b.catalog, b.types = catalog, types
}
