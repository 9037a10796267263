package follow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crdcache/crdcache/internal/pattern"
)

// Namespaces is a set of namespaces. The zero value is not set, which comes to All.
type Namespaces struct {
	kind  namespacesKind
	names []string // sorted, without duplicates
	// except are patterns that names, which are patterns then, do not count for.
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

// All is every namespace, with what is in none.
func All() Namespaces { return Namespaces{kind: namespacesAll} }

// Only is these namespaces.
func Only(names ...string) Namespaces {
	return Namespaces{kind: namespacesOnly, names: sortedUnique(names)}
}

// Except is every namespace but these, with what is in none.
func Except(names ...string) Namespaces {
	return Namespaces{kind: namespacesExcept, names: sortedUnique(names)}
}

// Matching is every namespace that matches one of the patterns of include, or any without include, and none
// of except.
func Matching(include, except []string) Namespaces {
	return Namespaces{kind: namespacesMatching, names: sortedUnique(include), except: sortedUnique(except)}
}

func sortedUnique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// String describes the set: "all", "in a,b", "except a,b", "matching a-*", "matching a-* except a-b", or "not
// matching a-*".
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

// Key identifies the set: unlike String, it tells apart what all namespaces and every pattern do differently
// where not everything may be read.
func (n Namespaces) Key() string {
	return fmt.Sprintf("%d %q %q", max(n.kind, namespacesAll), n.names, n.except)
}

// IsSet reports whether it is not the zero value.
func (n Namespaces) IsSet() bool { return n.kind != namespacesUnset }

// IsAll reports whether it is every namespace, whichever there are.
func (n Namespaces) IsAll() bool { return n.kind <= namespacesAll }

// Only returns the namespace that the set is made up of, if it is a single one.
func (n Namespaces) Only() (namespace string, one bool) {
	if n.kind != namespacesOnly || len(n.names) != 1 {
		return "", false
	}
	return n.names[0], true
}

// Limited reports whether the set is made up of namespaces alone, without what is in none.
func (n Namespaces) Limited() bool {
	return n.kind == namespacesOnly || n.kind == namespacesMatching && len(n.names) > 0
}

// Validate returns what is wrong with the set.
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
			return errors.New("the list of namespaces has an empty name; AllNamespaces are all")
		case strings.Contains(name, "*"):
			return fmt.Errorf("%q is a pattern and no name of a namespace; use MatchingNamespaces", name)
		case err != nil:
			return fmt.Errorf("no namespace can have the name %q: %w", name, err)
		}
	}
	return nil
}

// checkName returns why no namespace can have a name.
func checkName(name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

// Filter returns what tells the objects of the set from those that a request for all namespaces brings
// besides; nil when there are none.
func (n Namespaces) Filter() func(runtime.Object) bool {
	if n.kind != namespacesExcept && n.kind != namespacesMatching {
		return nil
	}
	return func(obj runtime.Object) bool {
		o, err := meta.Accessor(obj)
		return err != nil || n.Has(o.GetNamespace())
	}
}

// requested returns the namespaces for which requests are sent, "" being a request for all.
func (n Namespaces) requested() []string {
	if n.kind == namespacesOnly {
		return n.names
	}
	return []string{""}
}

// fallsBack reports whether a type is to be followed in each namespace of the set where all may not be read.
func (n Namespaces) fallsBack(known *knowledge) bool {
	switch n.kind {
	case namespacesMatching, namespacesExcept:
		return n.Limited() || known.exists && known.Namespaced
	}
	return false
}

// Has reports whether a namespace, or "" for none, is in the set.
func (n Namespaces) Has(namespace string) bool {
	matches := func(p string) bool { return pattern.Match(p, namespace) }
	switch {
	case n.kind == namespacesOnly:
		return slices.Contains(n.names, namespace)
	case n.kind == namespacesExcept:
		return !slices.Contains(n.names, namespace)
	case namespace == "":
		return !n.Limited()
	}
	return (len(n.names) == 0 || slices.ContainsFunc(n.names, matches)) &&
		!slices.ContainsFunc(n.except, matches)
}

// named returns the namespaces of the set that it has by name.
func (n Namespaces) named() []string {
	if n.kind != namespacesMatching {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.names),
		func(name string) bool { return strings.Contains(name, "*") || !n.Has(name) })
}
