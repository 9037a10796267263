package naming

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Key returns the store key of an object: "namespace/name", or the name of a cluster-scoped object. It
// returns false if the name is empty, or if a part contains a slash. Without this check, the name
// "kube-system/admin" would read the object "admin" of another namespace.
func Key(name cache.ObjectName) (key string, ok bool) {
	if name.Name == "" || strings.Contains(name.Name, "/") || strings.Contains(name.Namespace, "/") {
		return "", false
	}
	return name.String(), true
}

// KeyOf is Key that returns "" if no object can have the name.
func KeyOf(namespace, name string) string {
	key, _ := Key(cache.NewObjectName(namespace, name))
	return key
}

// SplitKey returns the namespace, which is empty for a cluster-scoped object, and the name in a key.
func SplitKey(key string) (namespace, name string) {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return namespace, name
	}
	return "", key
}

// NumberedKey returns a key for an object with the key of another one, which sorts after that of the other.
func NumberedKey(key string, n int) string { return fmt.Sprintf("%s\x00%06d", key, n) }

// WithoutNumber returns the key, or the name, of the object that has a numbered one.
func WithoutNumber(key string) string {
	key, _, _ = strings.Cut(key, "\x00")
	return key
}

// Texts returns the text of each item.
func Texts[T any](items []T, text func(T) string) []string { return Map(items, text) }

// Map returns the value of a function for each item. The result is not nil.
func Map[T, V any](items []T, valueOf func(T) V) []V {
	values := make([]V, len(items))
	for i, item := range items {
		values[i] = valueOf(item)
	}
	return values
}

// Each calls a function for each item until it returns an error.
func Each[T any](items []T, do func(T) error) error {
	for _, item := range items {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

// AppendMissing appends the items that a list lacks, each once.
func AppendMissing[T comparable](list []T, items ...T) []T {
	for _, item := range items {
		if !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// Find returns the first item that a function accepts.
func Find[T any](items []T, accepts func(T) bool) (found T, ok bool) {
	if i := slices.IndexFunc(items, accepts); i >= 0 {
		return items[i], true
	}
	return found, false
}

// FormatTypes returns the types of FormatType, separated by commas.
func FormatTypes(types []schema.GroupVersionResource) string {
	return strings.Join(Texts(types, FormatType), ", ")
}

// FormatType returns RESOURCE.VERSION.GROUP, without empty parts.
func FormatType(gvr schema.GroupVersionResource) string {
	name := gvr.Resource
	for _, part := range []string{gvr.Version, gvr.Group} {
		if part != "" {
			name += "." + part
		}
	}
	return name
}

// CompareTypes orders types by group, resource and version.
func CompareTypes(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Version, b.Version))
}

// IsVersion reports whether a resource version has an order: a positive number without leading zeros.
func IsVersion(version string) bool {
	if version == "" || version[0] == '0' {
		return false
	}
	for k := range len(version) {
		if version[k] < '0' || version[k] > '9' {
			return false
		}
	}
	return true
}

// CompareVersions compares resource versions of one type. It returns an error for a version without an order.
// It replaces apimachinery's util/resourceversion, which would be another dependency.
func CompareVersions(a, b string) (int, error) {
	for _, version := range [...]string{a, b} {
		if !IsVersion(version) {
			return 0, fmt.Errorf("the resource version %q is not a number", version)
		}
	}
	return compareVersions(a, b), nil
}

// IsOlder reports whether a resource version precedes another. It returns false if they have no order.
func IsOlder(a, b string) bool { return IsVersion(a) && IsVersion(b) && compareVersions(a, b) < 0 }

func compareVersions(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
