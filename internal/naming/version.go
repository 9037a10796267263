package naming

import (
	"cmp"
	"fmt"
)

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
func IsOlder(a, b string) bool {
	return IsVersion(a) && IsVersion(b) && compareVersions(a, b) < 0
}

func compareVersions(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
