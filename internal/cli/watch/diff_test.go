package watch

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompare: changes are told field by field, in lists by name where elements have one.
func TestCompare(t *testing.T) {
	before := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "labels": map[string]any{"a.b/c": "x", "gone": "y"}},
		"spec":     map[string]any{"n": int64(1), "list": []any{"a", "b"}, "same": map[string]any{"k": []any{int64(1)}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False"}, map[string]any{"type": "Old", "status": "True"},
		}},
	}
	after := map[string]any{
		"metadata": map[string]any{"resourceVersion": "2", "labels": map[string]any{"a.b/c": "z"}},
		"spec":     map[string]any{"n": map[string]any{}, "list": []any{"a", "c", "d"}, "same": map[string]any{"k": []any{int64(1)}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "New", "status": "True"}, map[string]any{"type": "Ready", "status": "True"},
		}},
	}
	var lines []string
	for _, c := range compare(before, after) {
		lines = append(lines, c.line(false))
	}
	want := []string{
		`  ~ .metadata.labels['a.b/c']: "x" → "z"`,
		`  - .metadata.labels.gone: "y"`,
		`  ~ .spec.list[1]: "b" → "c"`,
		`  + .spec.list[2]: "d"`,
		`  ~ .spec.n: 1 → {}`,
		`  + .status.conditions[type=New]: {"status":"True","type":"New"}`,
		`  - .status.conditions[type=Old]: {"status":"True","type":"Old"}`,
		`  ~ .status.conditions[type=Ready].status: "False" → "True"`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if same := compare(before, before); len(same) > 0 {
		t.Errorf("an object differs from itself: %v", same)
	}
}

// TestHostileChange: nothing of an object reaches the terminal as more than text.
func TestHostileChange(t *testing.T) {
	c := change{path: ".spec\x1b[2J", old: "\x1b]0;x\x07\u009b", new: strings.Repeat("x", 1<<20), hasOld: true, hasNew: true}
	line := c.line(false)
	if strings.ContainsAny(line, "\x1b\x07\u009b\n") || len(line) > 1000 {
		t.Errorf("the line is %.200q", line)
	}
	if colored := c.line(true); !strings.HasPrefix(colored, yellow) || !strings.HasSuffix(colored, plain) {
		t.Errorf("the coloured line is %.200q", colored)
	}
}
