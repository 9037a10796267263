// Package configversion lists the apiVersions of IndexConfig and ServerConfig.
package configversion

import "slices"

// Current is the version that crdcache writes.
const Current = "crdcache.dev/v1beta1"

// Deprecated are older versions that can be read. They have the fields of Current.
var Deprecated = []string{"crdcache.dev/v1alpha1"}

// IsDeprecated reports whether a version is deprecated.
func IsDeprecated(version string) bool { return slices.Contains(Deprecated, version) }
