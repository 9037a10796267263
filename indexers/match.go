package indexers

import "github.com/crdcache/crdcache/indexers/internal/config"

// Pattern reports whether the match can mean several resources.
func (m Match) Pattern() bool { return config.Match(m).Pattern() }

// Matches reports whether the match means a resource with this group, plural name and kind.
func (m Match) Matches(group, resource, kind string) bool {
	return config.Match(m).Matches(group, resource, kind)
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
func (n Namespaces) Matches(namespace string) bool { return config.Namespaces(n).Matches(namespace) }
