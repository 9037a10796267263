package dynamicinformer

import (
	"slices"
	"strings"
)

// MatchingNamespaces is every namespace whose name fits one of include and none of except, where "*" stands for
// any run of characters; without include, every one but those that fit except, with what is in none. Namespaces
// count as they come and go.
//
// Everything is watched, and what is not wanted dropped on arrival, where that is allowed. Where listing or watching
// the type in all namespaces is forbidden, an informer of all namespaces, shared by the factory and part of its
// Status, tells which there are, and each that fits is listed and watched by itself, from when it comes until it
// goes. Should the server not tell the namespaces either, those that include has by name are followed, and the state
// is degraded, with ReasonForbidden. Meanwhile the server is asked again every one to five minutes, and on Retry,
// whether everything may be read, and then it is. The cache stays readable through all of that. A type that may be
// cluster-scoped, as each may be without Options.Types, is followed by namespaces only if include has any.
func MatchingNamespaces(include, except []string) Namespaces {
	n := namespaces(namespacesMatching, include)
	n.except = namespaces(namespacesMatching, except).names
	return n
}

// fallsBack reports whether a type is to be followed in each namespace of the set where all may not be read.
func (n Namespaces) fallsBack(seen sees) bool {
	switch n.kind {
	case namespacesMatching, namespacesExcept:
		return n.limited() || seen.exists && seen.Namespaced
	}
	return false
}

// fits reports whether a namespace, or "" for none, is among those that the set does not have by name.
func (n Namespaces) fits(namespace string) bool {
	if n.kind == namespacesExcept {
		return !slices.Contains(n.names, namespace)
	}
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
