package discovery

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
)

// Matches reports whether the interpretation matches a type that is not in a Catalog. resourceNames are the
// plural, then singular, kind, short names and categories, if known. Patterns are compared with the plural.
// Unlike Resolve, it does not choose between matching types.
func (r Interpretation) Matches(group string, versions, resourceNames []string) bool {
	if r.Version != "" && !slices.Contains(versions, r.Version) {
		return false
	}
	if !strings.HasPrefix(group, r.Group) && !naming.Match(r.Group, group) {
		return false
	}
	if strings.Contains(r.Resource, "*") {
		return naming.Match(r.Resource, resourceNames[0])
	}
	return slices.ContainsFunc(resourceNames,
		func(name string) bool { return strings.EqualFold(name, r.Resource) })
}
