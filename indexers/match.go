package indexers

import "strings"

// Pattern reports whether the match can mean several resources.
func (m Match) Pattern() bool { return strings.Contains(m.Group+m.Resource, "*") }

// Matches reports whether the match means a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	if m.Kind != "" {
		return matchPattern(m.Group, group) && m.Kind == kind
	}
	return matchPattern(m.Group, group) && matchPattern(m.Resource, resource)
}

// Namespaces limits a resource to some namespaces. The zero value means all of them.
type Namespaces struct {
	// Include and Exclude hold names and patterns, in which "*" stands for any run of characters.
	// An empty Include stands for all.
	Include, Exclude []string
}

// All reports whether there is no limit.
func (n Namespaces) All() bool { return len(n.Include) == 0 && len(n.Exclude) == 0 }

// Matches reports whether a namespace is among those that are meant. What is excluded is so however
// it is included.
func (n Namespaces) Matches(namespace string) bool {
	included := len(n.Include) == 0
	for _, p := range n.Include {
		included = included || matchPattern(p, namespace)
	}
	for _, p := range n.Exclude {
		included = included && !matchPattern(p, namespace)
	}
	return included
}

// matchPattern reports whether s fits a pattern in which "*" stands for any run of characters.
func matchPattern(pattern, s string) bool {
	first, rest, ok := strings.Cut(pattern, "*")
	if !ok {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], after
	}
}
