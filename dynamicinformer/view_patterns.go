package dynamicinformer

import (
	"slices"
	"strings"
)

// MatchingNamespaces is every namespace whose name fits one of include and none of except, where "*" stands for
// any run of characters; without include, every one but those that fit except, with what is in none. Namespaces
// count as they come and go. It takes the right to read all of them, because what is not wanted is dropped on
// arrival.
func MatchingNamespaces(include, except []string) Namespaces {
	n := namespaces(namespacesMatching, include)
	n.except = namespaces(namespacesMatching, except).names
	return n
}

// fits reports whether a namespace, or "" for none, is among those of patterns.
func (n Namespaces) fits(namespace string) bool {
	matches := func(pattern string) bool { return matchPattern(pattern, namespace) }
	if namespace == "" {
		return len(n.names) == 0
	}
	return (len(n.names) == 0 || slices.ContainsFunc(n.names, matches)) && !slices.ContainsFunc(n.except, matches)
}

// matchPattern reports whether a name fits a pattern in which "*" stands for any run of characters.
func matchPattern(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}
