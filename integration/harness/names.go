package harness

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// names counts what has been given out, so that no two tests get the same name, nor the runs of one test
// under -count.
var names atomic.Int64

// Group returns an API group that no other test has.
func Group(t testing.TB) string {
	t.Helper()
	return uniqueName(t.Name()) + ".crdcache.test"
}

// uniqueName makes a DNS label of a test's name that nobody else has.
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
