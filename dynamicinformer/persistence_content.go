package dynamicinformer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// keptContent is what is saved of a snapshot: everything, or the namespaces that have been read by
// themselves, with the resource version of each.
type keptContent struct {
	*store.Snapshot
	namespaces map[string]string // nil: everything
}

// isAt reports whether another content, of the same generation, is the same one.
func (c *keptContent) isAt(other *keptContent) bool {
	if c.namespaces == nil && other.namespaces == nil {
		return c.ResourceVersion() == other.ResourceVersion()
	}
	return c.namespaces != nil && other.namespaces != nil && maps.Equal(c.namespaces, other.namespaces)
}

// has reports whether the object of a key is kept.
func (c *keptContent) has(key string) bool {
	if c.namespaces == nil {
		return true
	}
	namespace, _, _ := strings.Cut(key, "/")
	return c.namespaces[namespace] != ""
}

// count counts the objects.
func (c *keptContent) count() int {
	if c.namespaces == nil {
		return c.Len()
	}
	count := 0
	for key := range c.All {
		if c.has(key) {
			count++
		}
	}
	return count
}

// comparable reports whether what differs between the snapshots is what differs between what is kept of them:
// it is not where a namespace is kept of one of them, and shown by both.
func (c *keptContent) comparable(next *keptContent) bool {
	if (c.namespaces == nil) != (next.namespaces == nil) {
		return false
	}
	return c.lacksOthers(next) && next.lacksOthers(c)
}

// lacksOthers reports whether it shows no object of the namespaces that another one keeps, and this one does
// not.
func (c *keptContent) lacksOthers(other *keptContent) bool {
	for namespace := range other.namespaces {
		if c.namespaces[namespace] == "" && c.shows(namespace) {
			return false
		}
	}
	return true
}

// shows reports whether there is an object in a namespace.
func (c *keptContent) shows(namespace string) bool {
	keys, err := c.KeysByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // there is no such index
		keys = c.Keys()
	}
	return slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, namespace+"/") })
}

// formatVersions writes the resource versions of namespaces, and parseVersions reads them.
func formatVersions(versions map[string]string) string {
	parts := make([]string, 0, len(versions))
	for _, namespace := range slices.Sorted(maps.Keys(versions)) {
		parts = append(parts, namespace+"="+versions[namespace])
	}
	return strings.Join(parts, ",")
}

func parseVersions(text string) (map[string]string, error) {
	versions := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		namespace, version, found := strings.Cut(part, "=")
		if !found || namespace == "" || version == "" {
			return nil, fmt.Errorf("%q is not the resource version of a namespace", part)
		}
		versions[namespace] = version
	}
	return versions, nil
}
