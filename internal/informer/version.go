package informer

import (
	"cmp"
	"fmt"
)

// compareVersions compares resource versions of one type, which are numbers of any length without leading
// zeros. It returns an error for others and for zero. It replaces apimachinery's util/resourceversion, which
// would be another dependency.
func compareVersions(a, b string) (int, error) {
	for _, version := range [...]string{a, b} {
		if !isVersion(version) {
			return 0, fmt.Errorf("the resource version %q is not a number", version)
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)), nil
}

func isVersion(version string) bool {
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
