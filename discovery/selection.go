package discovery

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResolvedType is a type to which a name resolves. An empty Version means the server's preferred version.
type ResolvedType struct {
	schema.GroupResource
	Version string
}

// Selection resolves names to types repeatedly while types are added and removed. A name of a single type
// keeps its first result, even if it becomes ambiguous later; the results of patterns and categories change.
// A Selection is created by NewSelection and safe for concurrent use.
type Selection struct {
	names []Name

	mu struct {
		sync.Mutex
		singleTypes map[string]ResolvedType // by Name.Raw
	}
}

// NewSelection returns a Selection of names. The error is a *NameError.
func NewSelection(names ...string) (*Selection, error) {
	s := &Selection{}
	s.mu.singleTypes = map[string]ResolvedType{}
	for _, name := range names {
		n, err := ParseName(name)
		if err != nil {
			return nil, err
		}
		s.names = append(s.names, n)
	}
	return s, nil
}

// Names returns the names in the given order.
func (s *Selection) Names() []Name { return slices.Clone(s.names) }

// MatchedTypes returns the types that the names match in a catalog. It includes types of failed groups.
func (s *Selection) MatchedTypes(catalog *Catalog) map[ResolvedType]bool {
	types := map[ResolvedType]bool{}
	for _, result := range s.nameResults(catalog) {
		for _, resolved := range result.types {
			types[resolved] = true
		}
	}
	// The preferred version and an explicit request for it are the same type.
	maps.DeleteFunc(types, func(c ResolvedType, _ bool) bool {
		preferred, _ := catalog.Lookup(c.WithVersion(c.Version))
		return c.Version != "" && preferred.Preferred && types[ResolvedType{GroupResource: c.GroupResource}]
	})
	return types
}

// Selected is a selected type.
type Selected struct {
	Resource
	// Name is the first name that matches only this type, or else the first name that matches it.
	Name string
	// FromPattern states that Name is a pattern or category.
	FromPattern bool
}

// Types returns the types that the names match in a catalog: each type once, in the version of the first name
// that matches it, ordered by names and then by the catalog. absent contains the names of single types and
// patterns without a match, with the reason: a *NoMatchError.
func (s *Selection) Types(catalog *Catalog) (types []Selected, absent map[string]error) {
	preferred := map[schema.GroupResource]Resource{}
	for _, r := range catalog.resources {
		if r.Preferred {
			preferred[r.GVR.GroupResource()] = r
		}
	}
	absent = map[string]error{}
	seenTypes := map[schema.GroupResource]int{}
	for i, result := range s.nameResults(catalog) {
		name := s.names[i]
		exists := result.matchesMany && result.err == nil
		for _, matched := range result.types {
			r, ok := preferred[matched.GroupResource]
			if matched.Version != "" {
				r, ok = catalog.Lookup(matched.WithVersion(matched.Version))
			}
			exists = exists || ok
			previous, isSeen := seenTypes[matched.GroupResource]
			switch {
			case !ok:
			case !isSeen:
				seenTypes[matched.GroupResource] = len(types)
				types = append(types, Selected{r, name.Raw, result.matchesMany})
			case types[previous].FromPattern && !result.matchesMany:
				types[previous].Name, types[previous].FromPattern = name.Raw, false
			}
		}
		if !exists {
			absent[name.Raw] = result.err
			if result.err == nil { // its earlier type was deleted; it may match another type
				absent[name.Raw] = catalog.noMatch(name)
			}
		}
	}
	return types, absent
}

type nameResult struct {
	types       []ResolvedType
	matchesMany bool
	err         error // reason why the name has no match
}

// nameResults returns the results of the names, in order.
func (s *Selection) nameResults(catalog *Catalog) []nameResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	results := make([]nameResult, len(s.names))
	for i, n := range s.names {
		if resolved, ok := s.mu.singleTypes[n.Raw]; ok {
			results[i].types = []ResolvedType{resolved}
			continue
		}
		resolution, err := catalog.ResolveName(n)
		if err != nil {
			results[i] = nameResult{matchesMany: n.HasWildcard(), err: err} // there may be a match later
			continue
		}
		result := &results[i]
		for _, r := range resolution.Resources {
			result.types = append(result.types, resolvedTypeOf(n, r.GVR))
		}
		if result.matchesMany = n.HasWildcard() || resolution.isCategory(n); !result.matchesMany {
			s.mu.singleTypes[n.Raw] = result.types[0]
		}
	}
	return results
}

// isCategory reports whether a name was resolved as a category, which has priority.
func (r Resolution) isCategory(n Name) bool {
	return len(r.Resources) == 0 || slices.Contains(r.Resources[0].Categories, n.Raw)
}

// resolvedTypeOf returns the type that a name matches. The result has a version only if the name contains
// that version, rather than a group with a name that starts with it.
func resolvedTypeOf(n Name, gvr schema.GroupVersionResource) ResolvedType {
	for _, r := range n.Interpretations {
		if r.Version != "" && r.Version == gvr.Version && !strings.HasPrefix(gvr.Group, r.Version) {
			return ResolvedType{gvr.GroupResource(), r.Version}
		}
	}
	return ResolvedType{GroupResource: gvr.GroupResource()}
}
