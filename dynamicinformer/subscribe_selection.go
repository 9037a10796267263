package dynamicinformer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/pattern"
)

// Selection says which types a Subscription is for: all that its patterns match and its Match accepts. In a
// pattern, * stands for any run of characters, ? for one, and [abc] for one of these; "*.crossplane.io" are
// the groups under crossplane.io at any depth, and not crossplane.io itself.
type Selection struct {
	// Group is the pattern of the API group. Empty is the core group; "*" are all.
	Group string
	// Version is the pattern of the version. Of those that match and can be listed and watched, the one that
	// the server prefers is followed, until it is no longer served. Default: "*".
	Version string
	// Resource is the pattern of the resource, in the plural. It is required; "*" are all.
	Resource string
	// Match limits the types further. It is called for each that the patterns match, whenever that comes or
	// changes, and no lock is held. Default: every type is accepted.
	Match func(typesource.Type) bool
}

// withDefaults returns the selection with its defaults filled in.
func (s Selection) withDefaults() Selection {
	if s.Version == "" {
		s.Version = "*"
	}
	return s
}

// validate returns everything that is wrong with the selection.
func (s Selection) validate() error {
	var errs []error
	if s.Resource == "" {
		errs = append(errs, errors.New("the selection has no Resource; \"*\" are all"))
	}
	for field, glob := range map[string]string{"Group": s.Group, "Version": s.Version,
		"Resource": s.Resource} {
		if err := pattern.CheckGlob(glob); err != nil {
			errs = append(errs, fmt.Errorf("the selection's %s %q is not a pattern: %w", field, glob, err))
		}
	}
	return errors.Join(errs...)
}

// choose returns the version of a type that is followed. current, if there is one, is kept as long as it can
// be.
func (s Selection) choose(t typesource.Type, current string) (string, bool) {
	if !pattern.MatchGlob(s.Group, t.GroupResource.Group) ||
		!pattern.MatchGlob(s.Resource, t.GroupResource.Resource) {
		return "", false
	}
	served := slices.DeleteFunc(slices.Clone(t.Versions),
		func(v string) bool { return !pattern.MatchGlob(s.Version, v) })
	if len(served) == 0 || s.Match != nil && !s.Match(t) {
		return "", false
	}
	if slices.Contains(served, current) {
		return current, true
	}
	return served[0], true
}
