package naming

import (
	"strings"

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
