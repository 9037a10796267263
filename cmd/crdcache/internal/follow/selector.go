package follow

import (
	"slices"
	"sync"

	"github.com/crdcache/crdcache/discovery"
)

// selector resolves the names of a command against the current types. It is safe for concurrent use.
type selector struct {
	*discovery.Selection
	snapshot func() *discovery.Snapshot

	mu struct {
		sync.Mutex
		snapshot     *discovery.Snapshot
		matchedTypes map[discovery.ResolvedType]bool // of snapshot
	}
}

func newSelector(names []string, snapshot func() *discovery.Snapshot) (*selector, error) {
	selection, err := discovery.NewSelection(names...)
	return &selector{Selection: selection, snapshot: snapshot}, err
}

// hasPatterns reports whether a name is a wildcard or a category.
func (s *selector) hasPatterns() bool {
	return slices.ContainsFunc(s.Names(), discovery.Name.HasWildcard)
}

// versions returns the requested versions, starting with the empty one.
func (s *selector) versions() []string {
	all := []string{""}
	for _, n := range s.Names() {
		for _, r := range n.Interpretations {
			if !slices.Contains(all, r.Version) {
				all = append(all, r.Version)
			}
		}
	}
	return all
}

// has reports whether a type matches the names at present.
func (s *selector) has(t discovery.ResolvedType) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.snapshot(); now != s.mu.snapshot {
		s.mu.snapshot, s.mu.matchedTypes = now, s.MatchedTypes(now.Catalog())
	}
	return s.mu.matchedTypes[t]
}
