package pattern

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Key returns the store key of an object: "namespace/name", or the name of an object without a namespace. It
// returns false if no object can have the name, because it is empty or a part has a slash. Without this
// check, a caller that passes on the name "kube-system/admin" reads the object "admin" of another namespace.
func Key(name cache.ObjectName) (key string, ok bool) {
	if name.Name == "" || strings.Contains(name.Name, "/") || strings.Contains(name.Namespace, "/") {
		return "", false
	}
	return name.String(), true
}
