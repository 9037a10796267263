package dynamicinformer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Namespaces is a set of namespaces. The zero value means that it is not set, which in the end comes to
// AllNamespaces.
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

// AllNamespaces is every namespace, with what is in none.
func AllNamespaces() Namespaces { return Namespaces{kind: namespacesAll} }

// InNamespaces is these namespaces. Objects of cluster-scoped types are in none.
func InNamespaces(names ...string) Namespaces { return namespaces(namespacesOnly, names) }

// ExceptNamespaces is every namespace but these, with what is in none. Everything is watched, and what is not wanted
// dropped on arrival; where that is forbidden, it is as with MatchingNamespaces.
func ExceptNamespaces(names ...string) Namespaces { return namespaces(namespacesExcept, names) }

func namespaces(kind namespacesKind, names []string) Namespaces {
	names = slices.Clone(names)
	slices.Sort(names)
	return Namespaces{kind: kind, names: slices.Compact(names)}
}

// String describes the set: "all", "in a,b", "except a,b", "matching a-*", "matching a-* except a-b", or "not matching
// a-*".
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

// key identifies the set: unlike String, it tells apart what all namespaces and every pattern do differently where not
// everything may be read.
func (n Namespaces) key() string {
	return fmt.Sprintf("%d %q %q", max(n.kind, namespacesAll), n.names, n.except)
}

func (n Namespaces) isSet() bool { return n.kind != namespacesUnset }

// limited reports whether the set is made up of namespaces alone, without what is in none.
func (n Namespaces) limited() bool {
	return n.kind == namespacesOnly || n.kind == namespacesMatching && len(n.names) > 0
}

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
	if n.kind == namespacesOnly && !n.several() {
		return n.names[0]
	}
	return ""
}

// filter returns what tells the objects of the set from those that a request for all namespaces brings
// besides; nil when there are none.
func (n Namespaces) filter() func(runtime.Object) bool {
	if n.kind != namespacesExcept && n.kind != namespacesMatching {
		return nil
	}
	return func(obj runtime.Object) bool {
		o, err := meta.Accessor(obj)
		return err != nil || n.fits(o.GetNamespace())
	}
}

// viewKey is what makes two views of a type the same.
type viewKey struct {
	namespaces, labels, fields, versions, prune string
	// nothing is set for selectors that match nothing, whose text is that of none.
	nothing          bool
	tweak, transform unsafe.Pointer
	storage          Storage
}

// view returns the key of the view that the options describe.
func (o ResourceOptions) view() viewKey {
	key := viewKey{
		namespaces: o.Namespaces.key(),
		nothing:    o.matchesNothing(),
		versions:   o.Versions.String(),
		prune:      o.Prune.key(),
		tweak:      identityOf(o.TweakListOptions),
		transform:  identityOf(o.Transform),
		storage:    o.Storage,
	}
	if o.LabelSelector != nil {
		key.labels = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		key.fields = o.FieldSelector.String()
	}
	if !key.storage.isSet() {
		key.storage.Mode = StoragePacked
	}
	return key
}

// identityOf returns the address of a func value. Two funcs with the same code that have captured different
// variables differ by it, unlike by the address of their code, which is what package reflect has to offer. It is
// that of no other func for as long as f is kept.
func identityOf[F func(schema.GroupVersionResource, *metav1.ListOptions) | cache.TransformFunc](f F) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f))
}

// describe says in one line how a view differs from all objects as they are.
func (o ResourceOptions) describe() string {
	var parts []string
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+value)
		}
	}
	key := o.view()
	if o.Namespaces.kind > namespacesAll {
		add("namespaces: ", o.Namespaces.String())
	}
	if key.nothing {
		parts = append(parts, "no objects")
	}
	add("labels: ", key.labels)
	add("fields: ", key.fields)
	if o.Versions.kind > versionPinned {
		add("versions: ", key.versions)
	}
	if key.tweak != nil {
		parts = append(parts, "requests adjusted")
	}
	if key.transform != nil {
		parts = append(parts, "transformed")
	}
	if o.Prune.isSet() {
		parts = append(parts, "pruned")
	}
	if key.storage.Mode != StoragePacked {
		add("storage: ", key.storage.Mode.String())
	}
	return strings.Join(parts, "; ")
}

// key identifies what is left out.
func (p Prune) key() string {
	return fmt.Sprintf("%q %q %q", slices.Sorted(slices.Values(p.Presets)), slices.Sorted(slices.Values(p.Paths)), slices.Sorted(slices.Values(p.Annotations)))
}
