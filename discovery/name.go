package discovery

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/naming"
)

// maxNameLength limits the length of names. A DNS subdomain is at most 253 characters; resource, version and
// group together are much shorter.
const maxNameLength = 512

// Name is a parsed resource name that has not been looked up. Whether "a.b.c" means version b of group c or
// group b.c depends on the types of a server, so a Name contains every interpretation.
type Name struct {
	// Raw is the parsed text.
	Raw string
	// Interpretations are tried in this order, the most specific first. There is at least one.
	Interpretations []Interpretation
}

// Interpretation is one possible meaning of a Name.
type Interpretation struct {
	// Resource is a plural, singular, short name, kind, category or a pattern with "*".
	Resource string
	// Version is empty for any version.
	Version string
	// Group is a group name, the beginning of a group name, or a pattern with "*". It is empty for any group.
	Group string
}

// versionPattern is the form Kubernetes requires of versions that sort by stability.
var versionPattern = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)

// ParseName splits a name. It accepts:
//
//	certificates, certificate, cert, Certificate, all     plural, singular, short name, kind, category
//	certificates.cert-manager.io                          resource.group (the group may be shortened)
//	certificates.v1.cert-manager.io, Certificate.v1.cert-manager.io
//	pods.v1, pods.v1.                                      resource.version
//	*, *.*, *.cert-manager.io, *.v1.apps, cert*.*          patterns
//
// The error is a *NameError and says which character or part is wrong.
func ParseName(s string) (Name, error) {
	if err := checkName(s); err != nil {
		return Name{}, err
	}
	n := Name{Raw: s}
	resource, rest, dotted := strings.Cut(s, ".")
	switch {
	case !dotted:
		n.add(resource, "", "")
	case rest == "*" || rest == "*.*":
		// "*.*" is equivalent to "*": any version of any group.
		n.add(resource, "", "*")
	default:
		version, group, hasVersion := strings.Cut(rest, ".")
		if hasVersion {
			n.add(resource, version, group)
		}
		if group != "" || !hasVersion {
			n.add(resource, "", rest)
		}
		if !hasVersion && versionPattern.MatchString(rest) {
			n.add(resource, rest, "")
		}
	}
	return n, nil
}

func (n *Name) add(resource, version, group string) {
	if version == "*" {
		version = ""
	}
	n.Interpretations = append(n.Interpretations,
		Interpretation{Resource: resource, Version: version, Group: group})
}

// HasWildcard reports whether the resource or group is a pattern, so that it can match several types.
func (n Name) HasWildcard() bool { return strings.Contains(n.Raw, "*") }

// checkName returns an error for text that cannot be a resource name on any server.
func checkName(s string) error {
	fail := func(offset int, format string, args ...any) error {
		return &NameError{Name: s, Offset: offset, Problem: fmt.Sprintf(format, args...)}
	}
	if s == "" {
		return fail(0, "the name is empty")
	}
	if len(s) > maxNameLength {
		return &NameError{Name: s[:32] + "...", Offset: maxNameLength,
			Problem: fmt.Sprintf("the name is longer than %d bytes", maxNameLength)}
	}
	for i, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '*':
		case c == '/' && strings.Count(s, "/") == 1 && strings.Contains(s[:i], "."):
			return fail(i, "write resource.version.group, as in %q", "certificates.v1.cert-manager.io")
		case c == '/':
			return fail(i, "subresources and object names are not types: name the type alone")
		case c == ',':
			return fail(i, "one name at a time: split the list at its commas")
		default:
			return fail(i, "character %q cannot be part of a resource name", c)
		}
	}
	if strings.HasPrefix(s, ".") {
		return fail(0, "the part before the first dot, the resource, is empty")
	}
	if i := strings.Index(s, ".."); i >= 0 {
		return fail(i, "a part between two dots is empty")
	}
	if strings.HasSuffix(s, ".") && strings.Count(s, ".") != 2 {
		return fail(len(s)-1, "only resource.version. (the core group) may end in a dot")
	}
	return nil
}

// Matches reports whether the interpretation matches a type that is not in a Catalog. resourceNames are the
// plural, then singular, kind, short names and categories, if known. Patterns are compared with the plural.
// Unlike Resolve, it does not choose between matching types.
func (i Interpretation) Matches(group string, versions, resourceNames []string) bool {
	if i.Version != "" && !slices.Contains(versions, i.Version) {
		return false
	}
	if !strings.HasPrefix(group, i.Group) && !naming.Match(i.Group, group) {
		return false
	}
	if strings.Contains(i.Resource, "*") {
		return naming.Match(i.Resource, resourceNames[0])
	}
	return slices.ContainsFunc(resourceNames,
		func(name string) bool { return strings.EqualFold(name, i.Resource) })
}
