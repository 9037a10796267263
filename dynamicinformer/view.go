package dynamicinformer

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Namespaces is a set of namespaces. The zero value means that it is not set, which in the end comes to
// AllNamespaces.
type Namespaces struct {
	kind  namespacesKind
	names []string // sorted, without duplicates
}

type namespacesKind int

const (
	namespacesUnset namespacesKind = iota
	namespacesAll
	namespacesOnly
	namespacesExcept
)

// AllNamespaces is every namespace, with what is in none.
func AllNamespaces() Namespaces { return Namespaces{kind: namespacesAll} }

// InNamespaces is these namespaces. Objects of cluster-scoped types are in none.
func InNamespaces(names ...string) Namespaces { return namespaces(namespacesOnly, names) }

// ExceptNamespaces is every namespace but these, with what is in none. It takes the right to read all of them,
// because what is not wanted is dropped on arrival.
func ExceptNamespaces(names ...string) Namespaces { return namespaces(namespacesExcept, names) }

func namespaces(kind namespacesKind, names []string) Namespaces {
	names = slices.Clone(names)
	slices.Sort(names)
	return Namespaces{kind: kind, names: slices.Compact(names)}
}

// String describes the set: "all", "in a,b" or "except a,b".
func (n Namespaces) String() string {
	switch n.kind {
	case namespacesOnly:
		return "in " + strings.Join(n.names, ",")
	case namespacesExcept:
		return "except " + strings.Join(n.names, ",")
	default:
		return "all"
	}
}

func (n Namespaces) isSet() bool { return n.kind != namespacesUnset }

// limited reports whether the set is made up of namespaces alone, without what is in none.
func (n Namespaces) limited() bool { return n.kind == namespacesOnly }

func (n Namespaces) validate() error {
	switch {
	case n.kind != namespacesOnly && n.kind != namespacesExcept:
		return nil
	case len(n.names) == 0:
		return errors.New("the list of namespaces is empty")
	case n.names[0] == "":
		return errors.New("the list of namespaces has an empty name; AllNamespaces are all")
	}
	return nil
}

// several reports whether the set is made up of more than one namespace.
func (n Namespaces) several() bool { return n.kind == namespacesOnly && len(n.names) > 1 }

// single returns the only namespace of the set, and "" where there are others.
func (n Namespaces) single() string {
	if n.limited() && !n.several() {
		return n.names[0]
	}
	return ""
}

// filter returns what tells the objects of the set from those that a request for all namespaces brings
// besides; nil when there are none.
func (n Namespaces) filter() func(runtime.Object) bool {
	if n.kind != namespacesExcept {
		return nil
	}
	return func(obj runtime.Object) bool {
		o, err := meta.Accessor(obj)
		return err != nil || !slices.Contains(n.names, o.GetNamespace())
	}
}
