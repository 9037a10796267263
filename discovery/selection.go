package discovery

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Claim is a type that a name stands for: in one version, or (empty) in the one that the server prefers.
type Claim struct {
	schema.GroupResource
	Version string
}

// Selection tells which types some names stand for, as types come and go. A name of a single type keeps its
// meaning once it has one, whatever else comes that it could mean; patterns and categories grow and shrink.
// It is made by NewSelection, and safe for concurrent use.
type Selection struct {
	names []Name

	mu struct {
		sync.Mutex
		single map[string]Claim // by Name.Raw
	}
}

// NewSelection returns a selection of what names stand for. The error is a *NameError.
func NewSelection(names ...string) (*Selection, error) {
	s := &Selection{}
	s.mu.single = map[string]Claim{}
	for _, name := range names {
		n, err := ParseName(name)
		if err != nil {
			return nil, err
		}
		s.names = append(s.names, n)
	}
	return s, nil
}

// Names returns the names, in their order.
func (s *Selection) Names() []Name { return slices.Clone(s.names) }

// Claims returns what the names stand for in a catalog. A type whose discovery failed is among it: it is not
// gone.
func (s *Selection) Claims(catalog *Catalog) map[Claim]bool {
	claims := map[Claim]bool{}
	for _, m := range s.meanings(catalog) {
		for _, c := range m.claims {
			claims[c] = true
		}
	}
	// Each version of a type is followed once.
	maps.DeleteFunc(claims, func(c Claim, _ bool) bool {
		preferred, _ := catalog.Lookup(c.WithVersion(c.Version))
		return c.Version != "" && preferred.Preferred && claims[Claim{GroupResource: c.GroupResource}]
	})
	return claims
}

// Selected is a type that is selected.
type Selected struct {
	Resource
	// Name is the first name that stands for it alone, or else the first one that stands for it.
	Name string
	// Many says that the name is a pattern or a category, which stands for any number of types.
	Many bool
}

// Types returns what the names stand for in a catalog: each type in one version, that of the first name that
// stands for it, in the order of the names and then in that of the catalog. absent has the names of single
// types and patterns that stand for nothing, with the reason: a *NoMatchError.
func (s *Selection) Types(catalog *Catalog) (types []Selected, absent map[string]error) {
	preferred := map[schema.GroupResource]Resource{}
	for _, r := range catalog.resources {
		if r.Preferred {
			preferred[r.GVR.GroupResource()] = r
		}
	}
	absent = map[string]error{}
	seen := map[schema.GroupResource]int{}
	for i, m := range s.meanings(catalog) {
		name := s.names[i]
		there := m.many && m.err == nil
		for _, c := range m.claims {
			r, ok := preferred[c.GroupResource]
			if c.Version != "" {
				r, ok = catalog.Lookup(c.WithVersion(c.Version))
			}
			there = there || ok
			before, known := seen[c.GroupResource]
			switch {
			case !ok:
			case !known:
				seen[c.GroupResource] = len(types)
				types = append(types, Selected{r, name.Raw, m.many})
			case types[before].Many && !m.many:
				types[before].Name, types[before].Many = name.Raw, false
			}
		}
		if !there {
			absent[name.Raw] = m.err
			if m.err == nil { // it stood for a type, and may stand for another one by now
				absent[name.Raw] = catalog.noMatch(name)
			}
		}
	}
	return types, absent
}

// meaning is what a name stands for.
type meaning struct {
	claims []Claim
	many   bool
	err    error // why there is none
}

// meanings are those of the names, in their order.
func (s *Selection) meanings(catalog *Catalog) []meaning {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]meaning, len(s.names))
	for i, n := range s.names {
		if c, ok := s.mu.single[n.Raw]; ok {
			all[i].claims = []Claim{c}
			continue
		}
		resolution, err := catalog.ResolveName(n)
		if err != nil {
			all[i] = meaning{many: n.Wildcard(), err: err} // there may be some later
			continue
		}
		m := &all[i]
		for _, r := range resolution.Resources {
			m.claims = append(m.claims, claimOf(n, r.GVR))
		}
		if m.many = n.Wildcard() || resolution.isCategory(n); !m.many {
			s.mu.single[n.Raw] = m.claims[0]
		}
	}
	return all
}

// isCategory reports whether a name was taken for a category, which comes before all else.
func (r Resolution) isCategory(n Name) bool {
	return len(r.Resources) == 0 || slices.Contains(r.Resources[0].Categories, n.Raw)
}

// claimOf is the claim of a name that stands for a type. The name is for one version where it was not read as
// the name of a group that begins like it.
func claimOf(n Name, gvr schema.GroupVersionResource) Claim {
	for _, r := range n.Readings {
		if r.Version != "" && r.Version == gvr.Version && !strings.HasPrefix(gvr.Group, r.Version) {
			return Claim{gvr.GroupResource(), r.Version}
		}
	}
	return Claim{GroupResource: gvr.GroupResource()}
}
