package follow

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
)

// claim is a type that a name stands for: in one version, or (empty) in the one that the server prefers.
type claim struct {
	schema.GroupResource
	version string
}

// selector tells which types the names of a command stand for, as types come and go. A name of a single type keeps
// its meaning once it has one, whatever else comes that it could mean; wildcards and categories grow. It is safe for
// concurrent use.
type selector struct {
	names    []discovery.Name
	snapshot func() *discovery.Snapshot

	mu struct {
		sync.Mutex
		of     *discovery.Snapshot
		claims map[claim]bool // of that snapshot
		single map[string]claim
	}
}

func newSelector(names []string, snapshot func() *discovery.Snapshot) (*selector, error) {
	s := &selector{snapshot: snapshot}
	s.mu.single = map[string]claim{}
	for _, name := range names {
		n, err := discovery.ParseName(name)
		if err != nil {
			return nil, err
		}
		s.names = append(s.names, n)
	}
	return s, nil
}

// versions are those that claims may have, the empty one first.
func (s *selector) versions() []string {
	all := []string{""}
	for _, n := range s.names {
		for _, r := range n.Readings {
			if !slices.Contains(all, r.Version) {
				all = append(all, r.Version)
			}
		}
	}
	return all
}

// has reports whether a claim is among those of the newest snapshot.
func (s *selector) has(c claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.snapshot(); now != s.mu.of {
		s.mu.of, s.mu.claims = now, s.claimsLocked(now.Catalog())
	}
	return s.mu.claims[c]
}

func (s *selector) claimsLocked(catalog *discovery.Catalog) map[claim]bool {
	claims := map[claim]bool{}
	for _, n := range s.names {
		if c, ok := s.mu.single[n.Raw]; ok {
			claims[c] = true
			continue
		}
		resolution, err := catalog.ResolveName(n)
		if err != nil {
			continue // there may be some later
		}
		for _, r := range resolution.Resources {
			claims[claimOf(n, r.GVR)] = true
		}
		for _, skipped := range resolution.Skipped {
			if skipped.Reason == discovery.SkipStale { // it is not gone
				claims[claimOf(n, skipped.GVR)] = true
			}
		}
		if !n.Wildcard() && !isCategory(n, resolution) {
			s.mu.single[n.Raw] = claimOf(n, resolution.Resources[0].GVR)
		}
	}
	// Each version of a type is followed once.
	maps.DeleteFunc(claims, func(c claim, _ bool) bool {
		preferred, _ := catalog.Lookup(c.WithVersion(c.version))
		return c.version != "" && preferred.Preferred && claims[claim{GroupResource: c.GroupResource}]
	})
	return claims
}

// isCategory reports whether a name was taken for a category, which comes before all else.
func isCategory(n discovery.Name, resolution discovery.Resolution) bool {
	return len(resolution.Resources) == 0 || slices.Contains(resolution.Resources[0].Categories, n.Raw)
}

// claimOf is the claim of a name that stands for a type. The name is for one version where it was not read as the
// name of a group that begins like it.
func claimOf(n discovery.Name, gvr schema.GroupVersionResource) claim {
	for _, r := range n.Readings {
		if r.Version != "" && r.Version == gvr.Version && !strings.HasPrefix(gvr.Group, r.Version) {
			return claim{gvr.GroupResource(), r.Version}
		}
	}
	return claim{GroupResource: gvr.GroupResource()}
}
