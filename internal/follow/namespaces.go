package follow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/internal/naming"
)

// Namespaces is a set of namespaces. The zero value is unset, which means All.
type Namespaces struct {
	kind  namespacesKind
	names []string // sorted, without duplicates
	// except are patterns of excluded namespaces, if names are patterns.
	except []string
}

type namespacesKind int

const (
	namespacesUnset namespacesKind = iota
	namespacesAll
	namespacesOnly
	namespacesExcept
	namespacesMatching
)

// The constructors correspond to those of dynamicinformer.Namespaces.

func AllNamespaces() Namespaces { return Namespaces{kind: namespacesAll} }

func OnlyNamespaces(names ...string) Namespaces {
	return Namespaces{kind: namespacesOnly, names: sortedUnique(names)}
}

func AllNamespacesExcept(names ...string) Namespaces {
	return Namespaces{kind: namespacesExcept, names: sortedUnique(names)}
}

func NamespacesMatching(include, except []string) Namespaces {
	return Namespaces{kind: namespacesMatching, names: sortedUnique(include), except: sortedUnique(except)}
}

func sortedUnique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// String describes it: "all", "in a,b", "except a,b", "matching a-*", "not matching a-*", or with "except".
func (n Namespaces) String() string {
	names, except := strings.Join(n.names, ","), strings.Join(n.except, ",")
	switch {
	case n.kind == namespacesOnly:
		return "in " + names
	case n.kind == namespacesExcept:
		return "except " + names
	case n.kind != namespacesMatching || names+except == "":
		return "all"
	case names == "":
		return "not matching " + except
	case except == "":
		return "matching " + names
	default:
		return "matching " + names + " except " + except
	}
}

// Key identifies the set. Unlike String, it distinguishes all namespaces from the pattern that matches all,
// because they behave differently if listing all namespaces is forbidden.
func (n Namespaces) Key() string {
	return fmt.Sprintf("%d %q %q", max(n.kind, namespacesAll), n.names, n.except)
}

// IsAll reports whether the set is every namespace.
func (n Namespaces) IsAll() bool { return n.kind <= namespacesAll }

// Single returns the namespace if the set is a single one.
func (n Namespaces) Single() (namespace string, ok bool) {
	if n.kind != namespacesOnly || len(n.names) != 1 {
		return "", false
	}
	return n.names[0], true
}

// IsLimited reports whether the set excludes cluster-scoped objects.
func (n Namespaces) IsLimited() bool {
	return n.kind == namespacesOnly || n.kind == namespacesMatching && len(n.names) > 0
}

// Validate returns an error if the set is invalid.
func (n Namespaces) Validate() error {
	if n.kind == namespacesMatching {
		for _, p := range slices.Concat(n.names, n.except) {
			if err := checkName(strings.ReplaceAll(p, "*", "x")); err != nil {
				return fmt.Errorf("no namespace can match %q: %w", p, err)
			}
		}
		return nil
	}
	if n.kind != namespacesOnly && n.kind != namespacesExcept {
		return nil
	}
	if len(n.names) == 0 {
		return errors.New("the list of namespaces is empty")
	}
	for _, name := range n.names {
		switch err := checkName(name); {
		case name == "":
			return errors.New("the list of namespaces contains an empty name; use AllNamespaces for all")
		case strings.Contains(name, "*"):
			return fmt.Errorf("%q is a pattern, not a namespace; use MatchingNamespaces", name)
		case err != nil:
			return fmt.Errorf("no namespace can have the name %q: %w", name, err)
		}
	}
	return nil
}

// checkName returns an error if no namespace can have this name.
func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

// Filter returns a filter for the objects of a request for all namespaces, or nil if none is needed.
func (n Namespaces) Filter() func(runtime.Object) bool {
	if n.kind != namespacesExcept && n.kind != namespacesMatching {
		return nil
	}
	return func(obj runtime.Object) bool {
		o, err := meta.Accessor(obj)
		return err != nil || n.Has(o.GetNamespace())
	}
}

// requested returns the namespaces to request, where "" means all.
func (n Namespaces) requested() []string {
	if n.kind == namespacesOnly {
		return n.names
	}
	return []string{""}
}

// canFollowSeparately reports whether to follow the namespaces one by one if listing all is forbidden.
func (n Namespaces) canFollowSeparately(state *typeState) bool {
	return (n.kind == namespacesMatching || n.kind == namespacesExcept) &&
		(n.IsLimited() || state.exists && state.Namespaced)
}

// Has reports whether the set contains a namespace, or cluster-scoped objects ("").
func (n Namespaces) Has(namespace string) bool {
	matches := func(p string) bool { return naming.Match(p, namespace) }
	switch {
	case n.kind == namespacesOnly:
		return slices.Contains(n.names, namespace)
	case n.kind == namespacesExcept:
		return !slices.Contains(n.names, namespace)
	case namespace == "":
		return !n.IsLimited()
	}
	return (len(n.names) == 0 || slices.ContainsFunc(n.names, matches)) &&
		!slices.ContainsFunc(n.except, matches)
}

// exactNames returns the names in the set that are not patterns.
func (n Namespaces) exactNames() []string {
	if n.kind != namespacesMatching {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.names),
		func(name string) bool { return strings.Contains(name, "*") || !n.Has(name) })
}
