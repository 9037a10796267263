package server

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi/live"
)

// objectConfig is the part of the config that comes from custom resources. It is immutable.
type objectConfig struct {
	// types are the CachedTypes by precedence.
	types []*configObject
	// indexes are the permitted indexes of the cached types.
	indexes map[schema.GroupVersionResource][]*indexers.Index
}

// equals reports whether two configs have the same effect.
func (c *objectConfig) equals(other *objectConfig) bool {
	return slices.EqualFunc(c.types, other.types, func(a, b *configObject) bool {
		return a.GetUID() == b.GetUID() && a.GetGeneration() == b.GetGeneration()
	}) &&
		maps.EqualFunc(c.indexes, other.indexes, func(a, b []*indexers.Index) bool {
			return slices.EqualFunc(a, b, (*indexers.Index).Same)
		})
}

// names returns the names and patterns of the selected types.
func (c *objectConfig) names() []string {
	var names []string
	for _, o := range c.types {
		for _, r := range o.resources {
			names = append(names, typeNameOf(r.Match))
		}
	}
	return names
}

// element is an element of the list in a config object.
type element struct {
	*configObject
	number int
}

func (e element) resource() *indexers.Resource { return e.resources[e.number] }

func (e element) field() string { return e.element(e.number) }

// cachedTypes returns the element with the settings of a type: the first by precedence that selects it.
func (c *objectConfig) cachedTypes(r discovery.Resource) (element, bool) {
	for _, o := range c.types {
		for i, e := range o.resources {
			if e.Match.MatchesVersion(r.GVR, r.GVK.Kind) && checkScope(e, r) == nil {
				return element{o, i}, true
			}
		}
	}
	return element{}, false
}

// checkScope returns an error if an element limits the namespaces of a type without namespaces.
func checkScope(e *indexers.Resource, r discovery.Resource) error {
	if e.Namespaces.All() || r.Scope == discovery.Namespaced {
		return nil
	}
	return fmt.Errorf("the objects of %s have no namespaces: remove namespaces", r)
}

// settingsOf returns the settings that two elements for one type must agree in.
func (s *selection) settingsOf(r *indexers.Resource) []any {
	storage := r.Storage
	if storage.Mode == "" {
		storage.Mode = s.storage.Mode.String()
	}
	return []any{storage, r.EffectivePrune(), r.EffectiveKeep(), r.Namespaces}
}

// selects reports whether the config file selects a type. A name without a group selects types of any group.
func (s *selection) selects(r discovery.Resource) bool {
	return slices.ContainsFunc(s.names(), func(raw string) bool {
		name, err := discovery.ParseName(raw)
		return err == nil && slices.ContainsFunc(name.Interpretations, func(i discovery.Interpretation) bool {
			names := []string{r.GVR.Resource, r.Singular, r.GVK.Kind}
			return i.Matches(r.GVR.Group, []string{r.GVR.Version},
				slices.Concat(names, r.ShortNames, r.Categories))
		})
	})
}

// mergeResult is the result of merging config objects.
type mergeResult struct {
	config  *objectConfig
	objects []*mergedObject
	// rightsUnknown is set while some rights of namespaces are not known.
	rightsUnknown bool
}

// mergedObject is a config object with the errors that depend on other objects and on the cached types.
type mergedObject struct {
	*configObject
	errors []objectError
	// caches are the types that the object configures, with the names of its indexes.
	caches map[schema.GroupResource][]string
	// partlyVisible has the caches with objects that the namespace of an IndexConfig may not list. Their
	// figures must not be in its status: the size of an index with a condition reveals values.
	partlyVisible map[schema.GroupResource]bool
	// names are the types and patterns that a CachedTypes selects.
	names []string
}

func (m *mergedObject) fail(field, reason, format string, args ...any) {
	m.errors = append(m.errors, objectError{field, reason, fmt.Sprintf(format, args...)})
}

// mayList reports whether the service accounts of a namespace may list a type in a namespace, or in all ("").
// The error is errNotAskedYet if the answer will follow.
type mayList func(accounts, namespace string, cachedType live.CachedType) (bool, error)

// merge merges config objects into the config of the file. types are the types that are cached now: only they
// have indexes.
func (s *selection) merge(objects []*configObject, types []live.CachedType, mayListType mayList) mergeResult {
	merged := mergeResult{config: &objectConfig{indexes: map[schema.GroupVersionResource][]*indexers.Index{}}}
	sortByPrecedence(objects)
	for _, o := range objects {
		if o.GetKind() == cachedTypesKind && len(o.resources) > 0 {
			merged.config.types = append(merged.config.types, o)
		}
	}
	owners := map[schema.GroupVersionResource]map[string]string{}
	for _, o := range objects {
		result := &mergedObject{configObject: o, errors: slices.Clone(o.errors),
			caches:        map[schema.GroupResource][]string{},
			partlyVisible: map[schema.GroupResource]bool{}}
		merged.objects = append(merged.objects, result)
		for i := range o.resources {
			if e := (element{o, i}); o.GetKind() == cachedTypesKind {
				result.names = append(result.names, typeNameOf(e.resource().Match))
				s.mergeTypes(merged.config, result, e, types)
			} else {
				s.mergeIndexes(&merged, result, e, types, mayListType, owners)
			}
		}
	}
	return merged
}

// mergeTypes finds the types whose settings an element of CachedTypes provides, and its conflicts. Within one
// object, the first element that selects a type provides them.
func (s *selection) mergeTypes(c *objectConfig, result *mergedObject, elem element, types []live.CachedType) {
	for _, cachedType := range types {
		gr, resource := cachedType.GVR.GroupResource(), elem.resource()
		if !resource.Match.Matches(cachedType.GVR.Group, cachedType.GVR.Resource, cachedType.GVK.Kind) {
			continue
		}
		owner, settings, ownerObject := "the config file of crdcached", &indexers.Resource{}, false
		if winner, found := c.cachedTypes(cachedType.Resource); found && !s.selects(cachedType.Resource) {
			owner, settings = winner.String(), winner.resource()
			ownerObject = winner.configObject == elem.configObject
		}
		scope := checkScope(resource, cachedType.Resource)
		switch {
		case scope != nil:
			result.fail(elem.field()+".namespaces", reasonInvalid, "%v", scope)
		case !resource.Match.MatchesVersion(cachedType.GVR, cachedType.GVK.Kind):
			result.fail(elem.field()+".match.version", reasonConflict, "%s is cached in version %s: remove the version",
				gr, cachedType.GVR.Version)
		case ownerObject, reflect.DeepEqual(s.settingsOf(resource), s.settingsOf(settings)):
			result.caches[gr] = nil
		default:
			result.fail(elem.field(), reasonConflict,
				"%s, which takes precedence, has other settings for %s: remove the type from one of them", owner, gr)
		}
	}
}

// mergeIndexes adds the permitted indexes of an element of an IndexConfig. owners are the owners of the
// indexes of each type by name.
func (s *selection) mergeIndexes(merged *mergeResult, result *mergedObject, elem element,
	types []live.CachedType,
	mayListType mayList, owners map[schema.GroupVersionResource]map[string]string) {
	isCached := false
	for _, cachedType := range types {
		if !elem.resource().Match.MatchesVersion(cachedType.GVR, cachedType.GVK.Kind) {
			continue
		}
		isCached = true
		mayListAll := false
		allowed, err := mayListType(elem.GetNamespace(), elem.GetNamespace(), cachedType)
		if allowed {
			mayListAll, err = mayListType(elem.GetNamespace(), metav1.NamespaceAll, cachedType)
		}
		switch {
		case errors.Is(err, errNotAskedYet):
			merged.rightsUnknown = true
			result.fail(elem.field(), reasonUnknown, "the rights to list %s have not been reviewed yet",
				cachedType.GVR.GroupResource())
			continue
		case err != nil:
			result.fail(elem.field(), reasonUnknown, "%v", err)
			continue
		case !allowed:
			result.fail(elem.field(), reasonForbidden, "the group %s may not list %s: bind a role to it",
				serviceAccounts(elem.GetNamespace()), cachedType.GVR.GroupResource())
			continue
		}
		if owners[cachedType.GVR] == nil {
			owners[cachedType.GVR] = map[string]string{}
			for _, index := range s.indexes.IndexesOf(cachedType.GVR, cachedType.GVK.Kind) {
				owners[cachedType.GVR][index.Name] = "the config file of crdcached"
			}
		}
		gr := cachedType.GVR.GroupResource()
		result.partlyVisible[gr] = !mayListAll
		for i, index := range elem.resource().Indexes {
			field := fmt.Sprintf("%s.indexes[%d]", elem.field(), i)
			owner, exists := owners[cachedType.GVR][index.Name]
			switch {
			case exists && !slices.ContainsFunc(s.declared(merged.config, cachedType), index.Same):
				result.fail(field+".name", reasonConflict,
					"%s, which takes precedence, has another index %q of %s: choose another name", owner, index.Name, gr)
				continue
			case !exists:
				if dropped := droppedField(cachedType, index); dropped != "" {
					result.fail(field, reasonInvalid, "the index reads %s, which the cache of %s does not store: add it to keep.paths of its CachedTypes, or remove it from prune",
						dropped, gr)
					continue
				}
				owners[cachedType.GVR][index.Name] = elem.String()
				merged.config.indexes[cachedType.GVR] = append(merged.config.indexes[cachedType.GVR], index)
			}
			result.caches[gr] = append(result.caches[gr], index.Name)
		}
	}
	if !isCached {
		result.fail(elem.field()+".match", reasonNotCached,
			"crdcached does not cache %s: select it by a CachedTypes", typeNameOf(elem.resource().Match))
	}
}

// declared returns the indexes of a type in the config file, and of the config objects so far.
func (s *selection) declared(c *objectConfig, t live.CachedType) []*indexers.Index {
	return append(s.indexes.IndexesOf(t.GVR, t.GVK.Kind), c.indexes[t.GVR]...)
}

// droppedField returns a field that an index reads although the cache does not store it, or "". It asks the
// replacement of the informer, which gets the index. Queries by an index over a dropped field fail.
func droppedField(t live.CachedType, index *indexers.Index) string {
	informer := cmp.Or(t.Replacement, t.Informer)
	for _, field := range index.Fields() {
		if informer.Drops(field) {
			return strings.TrimSuffix(field, "..")
		}
	}
	return ""
}

// serviceAccounts returns the group of the service accounts of a namespace.
func serviceAccounts(namespace string) string { return "system:serviceaccounts:" + namespace }
