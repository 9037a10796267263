package follow

import (
	"slices"
	"sync"

	"github.com/crdcache/crdcache/discovery"
)

// selector matches the current types with the names of a command. It is safe for concurrent use.
type selector struct {
	*discovery.Selection
	snapshot func() *discovery.Snapshot

	mu struct {
		sync.Mutex
		snapshot     *discovery.Snapshot
		matchedTypes map[discovery.ResolvedType]bool // of snapshot
	}
}

// hasPatterns reports whether a name can match several types, such as a wildcard or a category.
func (s *selector) hasPatterns() bool {
	return slices.ContainsFunc(s.Names(), discovery.Name.HasWildcard)
}

// versions returns "" for the preferred version, and the versions in the names.
func (s *selector) versions() []string {
	versions := []string{""}
	for _, n := range s.Names() {
		for _, r := range n.Interpretations {
			if !slices.Contains(versions, r.Version) {
				versions = append(versions, r.Version)
			}
		}
	}
	return versions
}

// addListOnlyLocked adds the types of wildcards and categories that can be listed but not watched.
func (s *selector) addListOnlyLocked(catalog *discovery.Catalog) {
	for _, name := range s.Names() {
		resolution, _ := catalog.ResolveName(name) // without a match there may be one later
		for _, skipped := range resolution.Skipped {
			if skipped.Reason != discovery.SkipNoWatch {
				continue
			}
			matched := discovery.ResolvedType{GroupResource: skipped.GVR.GroupResource()}
			if !skipped.Resource.Preferred {
				matched.Version = skipped.GVR.Version
			}
			s.mu.matchedTypes[matched] = true
		}
	}
}

func (s *selector) matches(t discovery.ResolvedType) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current := s.snapshot(); current != s.mu.snapshot {
		s.mu.snapshot, s.mu.matchedTypes = current, s.MatchedTypes(current.Catalog())
		s.addListOnlyLocked(current.Catalog())
	}
	return s.mu.matchedTypes[t]
}
