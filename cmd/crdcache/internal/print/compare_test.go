package print

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestCompare verifies that objects are compared field by field, and lists by element name.
func TestCompare(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	before := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "generation": int64(1),
			"labels": map[string]any{"a.b/c": "x", "gone": "y"}},
		"spec": map[string]any{"n": int64(1), "list": []any{"a", "b"},
			"same": map[string]any{"k": []any{int64(1)}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False"}, map[string]any{"type": "Old",
				"status": "True"},
		}},
		"crdcache.dev/printed": map[string]any{"cells": []any{"1s"}},
	}
	after := map[string]any{
		"metadata": map[string]any{"resourceVersion": "2", "generation": int64(2),
			"labels": map[string]any{"a.b/c": "z"}},
		"spec": map[string]any{"n": map[string]any{}, "list": []any{"a", "c", "d"},
			"same": map[string]any{"k": []any{int64(1)}}},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": "New", "status": "True"}, map[string]any{"type": "Ready",
				"status": "True"},
		}},
		"crdcache.dev/printed": map[string]any{"cells": []any{"2s"}},
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
	if diff := cmp.Diff(want, diffLines(ChangesText(Compare(schema.GroupResource{}, before, after),
		false))); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if same := Compare(schema.GroupResource{}, before, before); len(same) > 0 {
		t.Errorf("Compare() of an object with itself = %v, want none", same)
	}
	if text := ChangesText(nil, false); text != "  only fields that change with every write\n" {
		t.Errorf("ChangesText() without changes = %q, want a line that says so", text)
	}
}

func diffLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// TestDiffText verifies the short text of each kind of difference.
func TestDiffText(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	long := strings.Repeat("0123456789", 12)
	condition := func(reason string) map[string]any {
		return map[string]any{"type": "Ready", "status": "True", "reason": reason,
			"message":            "the certificate is up to date and has not expired",
			"lastTransitionTime": "2026-01-01T00:00:00Z"}
	}
	tests := map[string]struct {
		before, after any
		want          []string
	}{
		"the first element is removed": {[]any{"a", "b", "c"}, []any{"b", "c"},
			[]string{`  - .x[0]: "a"`}},
		"an element is inserted": {[]any{"a", "c"}, []any{"a", "b", "c"},
			[]string{`  + .x[1]: "b"`}},
		"elements change around one that stays": {[]any{"a", "b", "c"}, []any{"x", "b", "y", "z"},
			[]string{`  ~ .x[0]: "a" → "x"`, `  ~ .x[2]: "c" → "y"`, `  + .x[3]: "z"`}},
		"another order": {[]any{"a", "b"}, []any{"b", "a"},
			[]string{`  - .x[0]: "a"`, `  + .x[1]: "a"`}},
		"elements without names": {
			[]any{map[string]any{"port": int64(80)}}, []any{map[string]any{"port": int64(81)}},
			[]string{"  ~ .x[0].port: 80 → 81"}},
		"emptied":      {map[string]any{"a": "b"}, map[string]any{}, []string{`  - .x.a: "b"`}},
		"another kind": {map[string]any{"a": "b"}, []any{"b"}, []string{`  ~ .x: {"a":"b"} → ["b"]`}},
		"null":         {nil, "", []string{`  ~ .x: null → ""`}},
		"the end of texts": {long + "old", long + "new",
			[]string{`  ~ .x: "…01234567890123456789old" → "…01234567890123456789new"`}},
		"lines of a text": {
			"# ports\nhttp: 80\nhttps: 443\nname: a\n", "# ports\nhttp: 8080\nhttps: 443\nname: a\nlog: b\n",
			[]string{"  ~ .x:", "      @ line 2", "      - http: 80", "      + http: 8080", "      @ line 5",
				"      + log: b"}},
		"a large value is added": {
			[]any{}, []any{condition("Ready")},
			[]string{"  + .x[type=Ready]:", `      lastTransitionTime: "2026-01-01T00:00:00Z"`,
				`      message: "the certificate is up to date and has not expired"`,
				`      reason: "Ready"`, `      status: "True"`, `      type: "Ready"`}},
		"a field of a condition": {[]any{condition("A")}, []any{condition("B")},
			[]string{`  ~ .x[type=Ready].reason: "A" → "B"`}},
		"a long text is added": {
			map[string]any{}, map[string]any{"k": long}, []string{`  + .x.k: "` + long[:98] + "…"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			changes := Compare(schema.GroupResource{}, map[string]any{"x": tt.before},
				map[string]any{"x": tt.after})
			if diff := cmp.Diff(tt.want, diffLines(ChangesText(changes, false))); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHostileChange checks that values cannot control the terminal.
func TestHostileChange(t *testing.T) {
	for name, after := range map[string]any{
		"long": strings.Repeat("x", 1<<20), "lines": "\x1b[2J\n\x1b]0;x\x07\n\u009b\r",
		"key": map[string]any{"\x1b[2J\n": strings.Repeat("\x1b", 200)},
	} {
		before := map[string]any{"spec\x1b[2J": "\x1b]0;x\x07\u009b\na"}
		text := ChangesText(Compare(schema.GroupResource{}, before,
			map[string]any{"spec\x1b[2J": after}), false)
		if strings.ContainsAny(text, "\x1b\x07\u009b\r") || len(text) > 2000 {
			t.Errorf("%s: the text is %.300q, want no control characters", name, text)
		}
	}
}

// TestPrintEndsLines verifies that an error is printed after a completed line.
func TestPrintEndsLines(t *testing.T) {
	const objects = 1000 // more than fit into the buffer
	broken := errors.New("interrupted")
	for _, name := range []string{"name", "jsonl"} {
		format, err := ParseFormat(name)
		must(t, err)
		section := Section{Each: func(w *Writer) error {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": strings.Repeat("a", 100)},
			}}
			for range objects {
				if err := w.Print(NewObject(object)); err != nil {
					return err
				}
			}
			return broken
		}}
		var out bytes.Buffer
		output := NewOutput(genericiooptions.IOStreams{Out: &out}, Style{Format: format})
		err = errors.Join(output.Print(t.Context(), []Section{section}, SectionOptions{}), output.Close())
		if !errors.Is(err, broken) || strings.Count(out.String(), "\n") != objects ||
			!strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%s: %v, %d lines, the end is %q", name, err, strings.Count(out.String(), "\n"),
				out.String()[max(0, out.Len()-20):])
		}
	}
}

// TestClustersAreCompleted verifies that the output of several clusters is complete, although reading one of
// them fails in the middle.
func TestClustersAreCompleted(t *testing.T) {
	broken := errors.New("connection lost")
	section := func(err error, names ...string) []Section {
		return []Section{{Rows: NewRows(nil, time.Now), Each: func(w *Writer) error {
			for _, name := range names {
				object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
				if err := w.Print(NewObject(object)); err != nil {
					return err
				}
			}
			return err
		}}}
	}
	for format, want := range map[string]string{
		TableOptions: "CLUSTER   NAME      AGE\none       first     \ntwo       another   \n",
		Name:         "one\t/first\ntwo\t/another\n",
		JSONLines: `{"metadata":{"annotations":{"crdcache.dev/cluster":"one"},"name":"first"}}` + "\n" +
			`{"metadata":{"annotations":{"crdcache.dev/cluster":"two"},"name":"another"}}` + "\n",
		YAML: "apiVersion: v1\nitems:\n" +
			"- metadata:\n    annotations:\n      crdcache.dev/cluster: one\n    name: first\n" +
			"- metadata:\n    annotations:\n      crdcache.dev/cluster: two\n    name: another\n" +
			"kind: List\nmetadata:\n  resourceVersion: \"\"\n",
		CSV: "CLUSTER,NAMESPACE,NAME,AGE\none,,first,\ntwo,,another,\n",
	} {
		var out strings.Builder
		output := NewOutput(genericiooptions.IOStreams{Out: &out}, Style{Format: Format{Name: format}})
		err := output.Print(t.Context(), section(broken, "first"), SectionOptions{Cluster: "one"})
		if !errors.Is(err, broken) {
			t.Errorf("%s: the error is %v, want %v", format, err, broken)
		}
		err = errors.Join(output.Print(t.Context(), section(nil, "another"), SectionOptions{Cluster: "two"}),
			output.Close())
		if err != nil || out.String() != want {
			t.Errorf("%s: %v, printed\n%swant\n%s", format, err, out.String(), want)
		}
	}
}
