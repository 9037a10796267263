package print

import "testing"

// TestCompareValues compares each value with the next.
func TestCompareValues(t *testing.T) {
	values := []any{
		nil, false, true, int64(-1), 0.5, int64(1), int64(1<<53) + 1, int64(1<<53) + 2, 1e300,
		"", "100m", "1", "1Ki", "2Gi", "3G", "node-9", "node-10", "node-10a", "node-010", "web",
	}
	for i, a := range values {
		for j, b := range values {
			got := compareValues(a, b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v and %v compare as %d", a, b, got)
			}
		}
	}
}
