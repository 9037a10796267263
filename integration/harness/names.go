package harness

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// names makes names unique among tests and among the runs of -count.
var names atomic.Int64

// Group returns an API group for one test.
func Group(t testing.TB) string {
	t.Helper()
	return uniqueName(t.Name()) + ".crdcache.test"
}

// uniqueName returns a unique DNS label that contains the name of the test.
func uniqueName(test string) string {
	const longest = 40
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		default:
			return '-'
		}
	}, strings.TrimPrefix(test, "Test"))
	label = strings.Trim(label[:min(len(label), longest)], "-")
	return fmt.Sprintf("%s-%d", strings.TrimLeft("t-"+label, "-"), names.Add(1))
}
