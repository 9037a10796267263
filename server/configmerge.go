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

// objectConfig is the part of the config that custom resources provide. It is immutable.
type objectConfig struct {
	// types are the CachedTypes in the order of precedence.
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
			names = append(names, matchTypeName(r.Match))
		}
	}
	return names
}

// element is an element of spec.types or spec.resources.
type element struct {
	*configObject
	index int
}

func (e element) resource() *indexers.Resource { return e.resources[e.index] }

func (e element) field() string { return e.elementPath(e.index) }

// providerOf returns the element that provides the settings of a type. This is the first element in the order
// of precedence that selects the type.
func (c *objectConfig) providerOf(r discovery.Resource) (element, bool) {
	for _, o := range c.types {
		for i, e := range o.resources {
			if e.Match.MatchesVersion(r.GVR, r.GVK.Kind) && validateScope(e, r) == nil {
				return element{o, i}, true
			}
		}
	}
	return element{}, false
}

// validateScope returns an error if an element limits the namespaces of a cluster-scoped type.
func validateScope(e *indexers.Resource, r discovery.Resource) error {
	if e.Namespaces.All() || r.Scope == discovery.Namespaced {
		return nil
	}
	return fmt.Errorf("the objects of %s have no namespaces: remove namespaces", r)
}

// comparedSettings returns the settings that must be equal in all elements that select one type.
func (s *selection) comparedSettings(r *indexers.Resource) []any {
	storage := r.Storage
	storage.Mode = cmp.Or(storage.Mode, s.storage.Mode.String())
	return []any{storage, r.EffectivePrune(), r.EffectiveKeep(), r.Namespaces}
}

// selectedByFiles reports whether the config file or an index config selects a type. A name without a group
// selects types of any group.
func (s *selection) selectedByFiles(r discovery.Resource) bool {
	return slices.ContainsFunc(s.fileTypeNames(), func(raw string) bool {
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
	// rightsUnknown is set if some rights of namespaces have not been reviewed yet.
	rightsUnknown bool
}

// mergedObject is a config object with the errors that depend on other objects and on the cached types.
type mergedObject struct {
	*configObject
	errors []objectError
	// caches are the types that the object configures, with the names of its indexes.
	caches map[schema.GroupResource][]string
	// partlyVisible has the types with objects that the namespace of an IndexConfig may not list. The
	// sizes of their indexes must not be in the status, because the size of an index with a condition
	// reveals values.
	partlyVisible map[schema.GroupResource]bool
	// names are the types and patterns that a CachedTypes selects.
	names []string
}

func (m *mergedObject) addError(field, reason, format string, args ...any) {
	m.errors = append(m.errors, objectError{field, reason, fmt.Sprintf(format, args...)})
}

// mayListFunc reports whether the service accounts of accountNamespace may list a type in a namespace, or in
// all (""). The error is errNotReviewedYet if a review is pending.
type mayListFunc func(accountNamespace, namespace string, cachedType live.CachedType) (bool, error)

// merge merges config objects into the config of the file. types are the types that are cached now. Only they
// have indexes.
func (s *selection) merge(objects []*configObject, types []live.CachedType, mayList mayListFunc) mergeResult {
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
				result.names = append(result.names, matchTypeName(e.resource().Match))
				s.mergeTypes(merged.config, result, e, types)
			} else {
				s.mergeIndexes(&merged, result, e, types, mayList, owners)
			}
		}
	}
	return merged
}

// mergeTypes adds the types whose settings an element of CachedTypes provides, and errors for conflicts.
// Within one object, the first element that selects a type provides its settings.
func (s *selection) mergeTypes(config *objectConfig, result *mergedObject, provider element,
	types []live.CachedType) {
	for _, cachedType := range types {
		gr, resource := cachedType.GVR.GroupResource(), provider.resource()
		if !resource.Match.Matches(cachedType.GVR.Group, cachedType.GVR.Resource, cachedType.GVK.Kind) {
			continue
		}
		owner, settings, isOwnObject := "the config file of crdcached", &indexers.Resource{}, false
		if winner, found := config.providerOf(cachedType.Resource); found &&
			!s.selectedByFiles(cachedType.Resource) {
			owner, settings = winner.String(), winner.resource()
			isOwnObject = winner.configObject == provider.configObject
		}
		scopeErr := validateScope(resource, cachedType.Resource)
		switch {
		case scopeErr != nil:
			result.addError(provider.field()+".namespaces", reasonInvalid, "%v", scopeErr)
		case !resource.Match.MatchesVersion(cachedType.GVR, cachedType.GVK.Kind):
			result.addError(provider.field()+".match.version", reasonConflict,
				"%s is cached in version %s: remove the version",
				gr, cachedType.GVR.Version)
		case isOwnObject, reflect.DeepEqual(s.comparedSettings(resource), s.comparedSettings(settings)):
			result.caches[gr] = nil
		default:
			result.addError(provider.field(), reasonConflict,
				"%s, which takes precedence, has other settings for %s: remove the type from one of them", owner, gr)
		}
	}
}

// mergeIndexes adds the permitted indexes of an element of an IndexConfig. owners has, for each type and
// index name, the file or object that declares the index.
func (s *selection) mergeIndexes(merged *mergeResult, result *mergedObject, provider element,
	types []live.CachedType,
	mayList mayListFunc, owners map[schema.GroupVersionResource]map[string]string) {
	isCached := false
	for _, cachedType := range types {
		if !provider.resource().Match.MatchesVersion(cachedType.GVR, cachedType.GVK.Kind) {
			continue
		}
		isCached = true
		mayListAll := false
		allowed, err := mayList(provider.GetNamespace(), provider.GetNamespace(), cachedType)
		if allowed {
			mayListAll, err = mayList(provider.GetNamespace(), metav1.NamespaceAll, cachedType)
		}
		switch {
		case errors.Is(err, errNotReviewedYet):
			merged.rightsUnknown = true
			result.addError(provider.field(), reasonRightsUnknown,
				"the rights to list %s have not been reviewed yet",
				cachedType.GVR.GroupResource())
			continue
		case err != nil:
			result.addError(provider.field(), reasonRightsUnknown, "%v", err)
			continue
		case !allowed:
			result.addError(provider.field(), reasonForbidden,
				"the group %s may not list %s: bind a role to it",
				serviceAccounts(provider.GetNamespace()), cachedType.GVR.GroupResource())
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
		for i, index := range provider.resource().Indexes {
			field := fmt.Sprintf("%s.indexes[%d]", provider.field(), i)
			owner, exists := owners[cachedType.GVR][index.Name]
			switch {
			case exists && !slices.ContainsFunc(s.declaredIndexes(merged.config, cachedType), index.Same):
				result.addError(field+".name", reasonConflict,
					"%s, which takes precedence, has another index %q of %s: choose another name", owner, index.Name, gr)
				continue
			case !exists:
				if droppedPath := droppedField(cachedType, index); droppedPath != "" {
					result.addError(field, reasonInvalid,
						"the index reads %s, which the cache of %s does not store: add it to keep.paths of its CachedTypes, or remove it from prune",
						droppedPath, gr)
					continue
				}
				owners[cachedType.GVR][index.Name] = provider.String()
				merged.config.indexes[cachedType.GVR] = append(merged.config.indexes[cachedType.GVR], index)
			}
			result.caches[gr] = append(result.caches[gr], index.Name)
		}
	}
	if !isCached {
		result.addError(provider.field()+".match", reasonNotCached,
			"crdcached does not cache %s: select it by a CachedTypes",
			matchTypeName(provider.resource().Match))
	}
}

// declaredIndexes returns the indexes of a type in the config file and in the objects that are merged so far.
func (s *selection) declaredIndexes(c *objectConfig, t live.CachedType) []*indexers.Index {
	return append(s.indexes.IndexesOf(t.GVR, t.GVK.Kind), c.indexes[t.GVR]...)
}

// droppedField returns a field that an index reads and that the cache does not store, or "". If the informer
// is being replaced, the replacement decides, because it gets the index. Queries by an index over a dropped
// field fail.
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
