package query

import (
	"testing"
	"time"
)

// WithNow sets the time that the matcher uses as now.
func (m *Matcher) WithNow(now time.Time) *Matcher {
	m.now = func() time.Time { return now }
	return m
}

func TestSplitDirection(t *testing.T) {
	for text, want := range map[string][2]string{
		"size desc": {"size", "desc"}, "size  up": {"size", "up"}, ".a desc": {".a",
			"desc"}, ".a['b desc']": {".a['b desc']", ""}, ".a[?(@.b == 1)] asc": {".a[?(@.b == 1)]", "asc"},
	} {
		if name, direction := splitDirection(text); name != want[0] || direction != want[1] {
			t.Errorf("splitDirection(%q) = %q, %q; want %q", text, name, direction, want)
		}
	}
}
