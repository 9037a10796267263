package discovery

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/naming"
)

// Resolve resolves a name to types of the catalog, without I/O.
//
// The order is kubectl's: a category wins over everything; then come plural and singular, short names, and
// kinds. Within one of these the core group wins, then the server's order of groups, then its order of
// versions. A group can be abbreviated ("ingress.networking") if no group has exactly that name. There are
// two extensions: a version can follow a short name ("cert.v1.cert-manager.io"), and "*" is allowed in the
// resource and in the group.
//
// The error is a *NameError if the text is not a valid name, otherwise a *NoMatchError.
func (c *Catalog) Resolve(name string) (Resolution, error) {
	n, err := ParseName(name)
	if err != nil {
		return Resolution{}, err
	}
	return c.ResolveName(n)
}

// ResolveName is Resolve for a parsed name.
func (c *Catalog) ResolveName(n Name) (Resolution, error) {
	if n.HasWildcard() {
		return c.expandWildcard(n)
	}
	positions := c.matchingPositions(n)
	if members := c.byCategory[n.Raw]; len(members) > 0 {
		res := c.divideWatchable(members)
		res.Alternatives = c.alternatives(positions, members)
		return res, nil
	}
	if len(positions) == 0 {
		return Resolution{}, c.noMatch(n)
	}
	return Resolution{
		Resources:    []Resource{c.resources[positions[0]]},
		Alternatives: c.alternatives(positions[1:], positions[:1]),
	}, nil
}

// matchingPositions returns the positions of all matches of a name without wildcards, the best first. A
// position can occur more than once.
func (c *Catalog) matchingPositions(n Name) []int {
	out := slices.Concat(naming.Map(n.Interpretations, c.matchNames)...)
	for _, r := range n.Interpretations {
		out = append(out, c.filter(c.byKind[strings.ToLower(r.Resource)], r, exactGroup)...)
	}
	return out
}

// matchNames compares plurals, singulars and short names: first in exactly the given group, and if there is
// no match in the groups with that prefix.
func (c *Catalog) matchNames(r Interpretation) []int {
	names, shorts := c.byName[strings.ToLower(r.Resource)], c.byShortName[r.Resource]
	out := append(c.filter(names, r, exactGroup), c.filter(shorts, r, exactGroup)...)
	if len(out) == 0 && r.Group != "" {
		out = append(c.filter(shorts, r, strings.HasPrefix), c.filter(names, r, strings.HasPrefix)...)
	}
	return out
}

func exactGroup(group, requested string) bool { return requested == "" || group == requested }

// filter returns the positions that fit the version and group of the interpretation.
func (c *Catalog) filter(positions []int, r Interpretation,
	matchesGroup func(group, requested string) bool) []int {
	var out []int
	for _, i := range positions {
		gvr := c.resources[i].GVR
		if (r.Version == "" || r.Version == gvr.Version) && matchesGroup(gvr.Group, r.Group) {
			out = append(out, i)
		}
	}
	return out
}

// alternatives returns the types among positions that are not among chosen, each once.
func (c *Catalog) alternatives(positions, chosen []int) []Resource {
	seenTypes := map[schema.GroupResource]bool{}
	for _, i := range chosen {
		seenTypes[c.resources[i].GVR.GroupResource()] = true
	}
	var out []Resource
	for _, i := range positions {
		r := c.resources[i]
		if gr := r.GVR.GroupResource(); !seenTypes[gr] {
			seenTypes[gr] = true
			out = append(out, r)
		}
	}
	return out
}

// divideWatchable divides the members of a category or wildcard into watchable and skipped ones.
func (c *Catalog) divideWatchable(members []int) Resolution {
	res := Resolution{FailedGroupVersions: c.FailedGroupVersions()}
	for _, i := range members {
		r := c.resources[i]
		if reason := skipReason(r); reason != "" {
			res.Skipped = append(res.Skipped, Skip{GVR: r.GVR, Reason: reason, Resource: r})
			continue
		}
		res.Resources = append(res.Resources, r)
	}
	return res
}

// expandWildcard returns every type that matches the pattern, in the preferred version unless the pattern has
// a version. It fails only if nothing matches, not if all matches are skipped.
func (c *Catalog) expandWildcard(n Name) (Resolution, error) {
	var members []int
	for i := range c.resources {
		if slices.ContainsFunc(n.Interpretations,
			func(r Interpretation) bool { return c.matchesPattern(i, r) }) {
			members = append(members, i)
		}
	}
	if len(members) == 0 {
		return Resolution{}, c.noMatch(n)
	}
	res := c.divideWatchable(members)
	for _, i := range members {
		r := c.resources[i]
		for _, sub := range r.Subresources {
			gvr := r.GVR
			gvr.Resource += "/" + sub
			res.Skipped = append(res.Skipped, Skip{GVR: gvr, Reason: SkipSubresource, Resource: r})
		}
	}
	res.FailedGroupVersions = c.failuresOf(n)
	return res, nil
}

func (c *Catalog) matchesPattern(i int, r Interpretation) bool {
	res := c.resources[i]
	matchesVersion := r.Version == res.GVR.Version || r.Version == "" && res.Preferred
	return matchesVersion && (r.Group == "" || naming.Match(r.Group, res.GVR.Group)) &&
		naming.Match(r.Resource, res.GVR.Resource)
}

// failuresOf returns the failed group versions whose types an interpretation of n can match.
func (c *Catalog) failuresOf(n Name) []GroupFailure {
	return slices.DeleteFunc(c.FailedGroupVersions(), func(f GroupFailure) bool {
		gv := f.GroupVersion
		return !slices.ContainsFunc(n.Interpretations, func(r Interpretation) bool {
			return (r.Version == "" || r.Version == gv.Version) &&
				(strings.HasPrefix(gv.Group, r.Group) || naming.Match(r.Group, gv.Group))
		})
	})
}

// noMatch returns the error for a name without a match.
func (c *Catalog) noMatch(n Name) error {
	return &NoMatchError{Name: n.Raw, Suggestions: c.suggest(n), FailedGroupVersions: c.failuresOf(n)}
}
