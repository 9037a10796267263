package indexers_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// compile returns the compiled functions of a resource with one index.
func compile(t testing.TB, index string) *indexers.Functions {
	t.Helper()
	text := strings.Replace(configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n    - "+
		index+"\n"), "NAME", "n", 1)
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
	noError(t, err)
	return indexers.Compile(c.Resources[0])
}

// keysOf returns the keys that the only function of f returns for an object.
func keysOf(t testing.TB, f *indexers.Functions, object any) []string {
	t.Helper()
	for _, fn := range f.Indexers() {
		values, err := fn(object)
		if err != nil {
			t.Error(err)
		}
		return values
	}
	t.Fatal("Indexers returned no function")
	return nil
}

type m = map[string]any

// spec returns the object ns/x with the given .spec.
func spec(v m) m { return m{"metadata": m{"name": "x", "namespace": "ns"}, "spec": v} }

func TestValues(t *testing.T) {
	tests := []struct {
		reason, index string
		object        any
		want          []string
		stats         indexers.Stats
	}{
		{"each value once, in order", "{name: i, path: '.spec.a[*]'}", spec(m{"a": []any{"b", "a", "b", ""}}),
			[]string{"b", "a", ""}, indexers.Stats{Values: 3}},
		{"scalars as text", "{name: i, path: '.spec.a[*]'}",
			spec(m{"a": []any{true, int64(9007199254740993), 2.5, 1.0, 1e21, 1e-7}}), []string{"true",
				"9007199254740993", "2.5", "1", "1e+21", "1e-7"}, indexers.Stats{Values: 6}},
		{"no lists, maps and odd numbers", "{name: i, path: '.spec.a[*]'}",
			spec(m{"a": []any{m{}, []any{}, math.NaN(), indexers.Null,
				"x"}}), []string{"x"}, indexers.Stats{Values: 1, SkippedType: 4}},
		{"missing is skipped", "{name: i, path: .spec.a}", spec(nil), nil, indexers.Stats{SkippedMissing: 1}},
		{"null is missing", "{name: i, path: .spec.a}", spec(m{"a": nil}), nil,
			indexers.Stats{SkippedMissing: 1}},
		{"missing as null", "{name: i, path: .spec.a, missing: AsNull}", spec(nil), []string{indexers.Null},
			indexers.Stats{Values: 1}},
		{"missing as a value, as it is written", "{name: i, path: .spec.a, default: '1.10'}",
			spec(nil), []string{"1.10"}, indexers.Stats{Values: 1}},
		{"missing is reported", "{name: i, path: .spec.a, missing: Report}", spec(nil), nil,
			indexers.Stats{SkippedMissing: 1, Reported: []string{"ns/x"}}},
		{"a list with a null", "{name: i, path: '.spec.a[*]', default: none}",
			spec(m{"a": []any{"x", nil}}), []string{"x"}, indexers.Stats{Values: 1}},
		{"null counts as missing", "{name: i, path: '.spec.a[*].b', missing: AsNull}",
			spec(m{"a": []any{m{"b": "x"}, m{"b": nil}, m{}}}), []string{"x"}, indexers.Stats{Values: 1}},
		{"only missing values and nulls", "{name: i, path: '.spec.a[*].b', missing: AsNull}",
			spec(m{"a": []any{m{"b": nil}, m{"b": nil},
				m{}}}), []string{indexers.Null}, indexers.Stats{Values: 1}},
		{"the first path", "{name: i, paths: [.spec.a, '.spec.b[*]', .spec.c]}",
			spec(m{"a": "1", "b": []any{"2"}}), []string{"1"}, indexers.Stats{Values: 1}},
		{"the second path", "{name: i, paths: [.spec.a, '.spec.b[*]', .spec.c]}",
			spec(m{"a": nil, "b": []any{"2", "3"}, "c": "4"}), []string{"2", "3"}, indexers.Stats{Values: 2}},
		{"no path", "{name: i, paths: [.spec.a, '.spec.b[*]'], default: x}",
			spec(m{"b": []any{nil}}), []string{"x"}, indexers.Stats{Values: 1}},
		{"a value of another type does not select the next path",
			"{name: i, paths: [.spec.a, .spec.b], type: Int}", spec(m{"a": "x",
				"b": "1"}), nil, indexers.Stats{SkippedType: 1}},
		{"the next path if no value matches the transform",
			"{name: i, paths: [.spec.a, .spec.b], regex: {match: '^v'}}", spec(m{"a": "x",
				"b": "v1"}), []string{"v"}, indexers.Stats{Values: 1}},
		{"a missing value from another path", "{name: i, paths: [.spec.a, .spec.b], transform: [Upper]}",
			spec(m{"b": "x"}), []string{"X"}, indexers.Stats{Values: 1}},
		{"the object from within an element",
			"{name: i, each: '.spec.a[*]', key: [{name: ns, paths: [.ns, $.metadata.namespace]}, {name: n, path: .n}, {name: top, path: $.spec.b}]}",
			spec(m{"b": "t", "a": []any{m{"ns": "o", "n": "1"}, m{"n": "2", "ns": nil}}}), []string{"o/1/t",
				"ns/2/t"}, indexers.Stats{Values: 2}},
		{"a label from within an element",
			"{name: i, each: '.spec.a[*]', key: [{name: l, label: x}, {name: n, path: .n}]}",
			m{"metadata": m{"labels": m{"x": "y"}}, "spec": m{"a": []any{m{"n": "1"}}}}, []string{"y/1"},
			indexers.Stats{Values: 1}},
		{"transforms in order",
			"{name: i, path: .spec.a, regex: {match: '^ *([^:]+):(.*)', group: 1}, transform: [Trim, Upper]}", spec(m{"a": " ab:c "}), []string{"AB"}, indexers.Stats{Values: 1}},
		{"the whole match by default", "{name: i, path: .spec.a, regex: {match: '[0-9]+'}}",
			spec(m{"a": "v12x"}), []string{"12"}, indexers.Stats{Values: 1}},
		{"no match is missing",
			"{name: i, path: .spec.a, default: none, regex: {match: '(x)?y', group: 1}}", spec(m{"a": "y"}), []string{"none"}, indexers.Stats{Values: 1}},
		{"too many values", "{name: i, path: '.spec.a[*]', maxValues: 2}",
			spec(m{"a": []any{"a", "b", "a", "c", "d"}}), []string{"a", "b"}, indexers.Stats{Values: 2,
				SkippedLimit: 2}},
		{"too long a value", "{name: i, path: '.spec.a[*]', maxValueBytes: 3}",
			spec(m{"a": []any{"abcd", "abc"}}), []string{"abc"}, indexers.Stats{Values: 1, SkippedLimit: 1}},
		{"too long a value for a regular expression",
			"{name: i, path: '.spec.a[*]', regex: {match: '^a'}}",
			spec(m{"a": []any{strings.Repeat("a", 64<<10+1), strings.Repeat("a", 64<<10)}}), []string{"a"},
			indexers.Stats{Values: 1, SkippedLimit: 1}},
		{"when holds", "{name: i, path: .spec.a, when: '@.spec.b > 1'}", spec(m{"a": "x", "b": int64(2)}),
			[]string{"x"}, indexers.Stats{Values: 1}},
		{"when does not hold", "{name: i, path: .spec.a, when: '@.spec.b > 1'}",
			spec(m{"a": "x", "b": int64(1)}), nil, indexers.Stats{SkippedWhen: 1}},
		{"fields of one element",
			"{name: i, each: '.spec.a[*]', key: [{name: x, path: .x}, {name: y, path: .y}]}",
			spec(m{"a": []any{m{"x": "1", "y": "2"}, m{"x": "3"}, m{"x": "a/b", "y": `c\`}}}), []string{"1/2",
				`a\/b/c\\`}, indexers.Stats{Values: 2, SkippedMissing: 1}},
		{"the element itself", "{name: i, each: '.spec.a[*]', key: [{name: x, path: '@'}]}",
			spec(m{"a": []any{"a/b"}}), []string{"a/b"}, indexers.Stats{Values: 1}},
		{"no element", "{name: i, each: '.spec.a[*]', key: [{name: x, path: .x}]}", spec(nil), nil,
			indexers.Stats{SkippedMissing: 1}},
		{"a composite of a path with several values",
			"{name: i, key: [{name: x, path: '.spec.a[*]'}, {name: y, path: .spec.b}]}",
			spec(m{"a": []any{"1", "2"}, "b": "z"}), []string{"1/z", "2/z"}, indexers.Stats{Values: 2}},
		{"a composite with a null",
			"{name: i, key: [{name: x, path: .spec.a}, {name: y, path: .spec.b, missing: AsNull}]}",
			spec(m{"a": "1"}), []string{indexers.Value("1", indexers.Null)}, indexers.Stats{Values: 1}},
		{"an incomplete composite", "{name: i, key: [{name: x, path: .spec.a}, {name: y, path: .spec.b}]}",
			spec(m{"a": "1"}), nil, indexers.Stats{SkippedMissing: 1}},
		{"the text of one NUL is not null", "{name: i, path: .spec.a, transform: [Trim]}",
			spec(m{"a": " \x00 "}), nil, indexers.Stats{SkippedType: 1}},
		{"unstructured", "{name: i, label: a/b}",
			&unstructured.Unstructured{Object: m{"metadata": m{"labels": m{"a/b": "x"}}}}, []string{"x"},
			indexers.Stats{Values: 1}},
		{"typed", "{name: i, label: a/b}",
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Labels: map[string]string{"a/b": "x"}}}, []string{"x"}, indexers.Stats{Values: 1}},
		{"deleted", "{name: i, path: .spec.a}", cache.DeletedFinalStateUnknown{Obj: spec(m{"a": "x"})},
			[]string{"x"}, indexers.Stats{Values: 1}},
		{"nil", "{name: i, path: .spec.a}", nil, nil, indexers.Stats{Failed: 1}},
		{"a nil pointer", "{name: i, path: .spec.a}", (*unstructured.Unstructured)(nil), nil,
			indexers.Stats{Failed: 1}},
		{"no object", "{name: i, path: .spec.a}", 7, nil, indexers.Stats{Failed: 1}},
		{"an object that panics", "{name: i, path: .spec.a}", panicking{}, nil, indexers.Stats{Failed: 1}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			f := compile(t, test.index)
			got := keysOf(t, f, test.object)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			test.stats.Index, test.stats.Seen = "i", 1
			if len(test.want) > 0 {
				test.stats.Matched = 1
			}
			if diff := cmp.Diff([]indexers.Stats{test.stats}, f.Stats()); diff != "" {
				t.Errorf("stats (-want +got):\n%s", diff)
			}
		})
	}
}

type panicking struct{}

func (panicking) UnstructuredContent() map[string]any { panic("no") }

// TestManyValues verifies that the limit applies to distinct values, also of a list so long that a map finds
// its duplicates.
func TestManyValues(t *testing.T) {
	var list []any
	for i := range 300 {
		list = append(list, int64(i%100))
	}
	f := compile(t, "{name: i, path: '.spec.a[*]', maxValues: 90}")
	if got := keysOf(t, f, spec(m{"a": list})); len(got) != 90 || got[89] != "89" {
		t.Errorf("got %d keys %v, want 90 keys, up to 89", len(got), got)
	}
	if s := f.Stats()[0]; s.SkippedLimit != 30 {
		t.Errorf("Stats = %+v, want SkippedLimit 30", s)
	}
}

func TestStatsInOneLine(t *testing.T) {
	for want, s := range map[string]indexers.Stats{
		"i: matched 0 of 120; skipped 3 values for their type": {Index: "i", Seen: 120, SkippedType: 3},
		"i: matched 2 of 2": {Index: "i", Seen: 2, Matched: 2, Values: 5},
		"i: matched 1 of 9; skipped 1 missing values; skipped 4 values beyond a limit; 2 objects are not meant; 3 calls failed": {Index: "i", Seen: 9, Matched: 1, SkippedMissing: 1, SkippedLimit: 4, SkippedWhen: 2, Failed: 3},
	} {
		if got := s.String(); got != want {
			t.Errorf("Stats.String() = %q, want %q", got, want)
		}
	}
}

// FuzzValue checks that Value returns equal keys only for equal parts.
func FuzzValue(f *testing.F) {
	f.Add("a/b", "c", "a", "b/c")
	f.Add(`a\`, `/b`, `a`, `\/b`)
	f.Add("", "/", "/", "")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		if same := a == c && b == d; same != (indexers.Value(a, b) == indexers.Value(c, d)) {
			t.Errorf("Value(%q, %q) = %q and Value(%q, %q) = %q, want equal keys only for equal parts",
				a, b, indexers.Value(a, b), c, d, indexers.Value(c, d))
		}
		if indexers.Value(a, b) == indexers.Value(a, b, c) {
			t.Errorf("Value(%q, %q) = Value(%q, %q, %q) = %q, want different keys", a, b, a, b, c,
				indexers.Value(a, b))
		}
	})
}

// TestMaxValueBytesMeasuresValues verifies that the limit maxValueBytes applies to the text of a value, not
// to its key.
func TestMaxValueBytesMeasuresValues(t *testing.T) {
	for index, want := range map[string]int{
		"{name: i, path: .spec.n, type: Int, order: Sorted, maxValueBytes: 2}":                                                  1,
		"{name: i, path: .spec.n, type: Int, order: Sorted, maxValueBytes: 1}":                                                  0,
		"{name: i, path: .spec.t, type: Time, order: Sorted, maxValueBytes: 19}":                                                0,
		"{name: i, path: .spec.t, type: Time, order: Sorted, maxValueBytes: 20}":                                                1,
		"{name: i, path: .spec.s, maxValueBytes: 3}":                                                                            1,
		"{name: i, path: .spec.s, maxValueBytes: 2}":                                                                            0,
		"{name: i, key: [{name: s, path: .spec.s}, {name: n, path: .spec.n}], maxValueBytes: 5}":                                1,
		"{name: i, key: [{name: s, path: .spec.s}, {name: n, path: .spec.n}], maxValueBytes: 4}":                                0,
		"{name: i, order: Sorted, key: [{name: s, path: .spec.s}, {name: n, path: '.spec.m[*]', type: Int}], maxValueBytes: 5}": 1,
		"{name: i, order: Sorted, key: [{name: s, path: .spec.s}, {name: n, path: '.spec.m[*]', type: Int}], maxValueBytes: 4}": 0,
		"{name: i, key: [{name: s, path: .spec.s}, {name: x, path: .spec.x, missing: AsNull}], maxValueBytes: 3}":               1,
		"{name: i, path: .spec.s, maxValueBytes: 1, regex: {match: '^.'}}":                                                      1,
		"{name: i, path: .spec.x, maxValueBytes: 3, default: long}":                                                             0,
	} {
		f := compile(t, index)
		if got := keysOf(t, f, spec(m{"n": int64(42), "t": "2026-01-01T00:00:00Z", "s": "a/b",
			"m": []any{int64(42)}})); len(got) != want {
			t.Errorf("keys of %s = %q, want %d keys", index, got, want)
		}
		if s := f.Stats()[0]; s.SkippedLimit != uint64(1-want) {
			t.Errorf("Stats of %s = %+v, want SkippedLimit %d", index, s, 1-want)
		}
	}
}

const schemaFile = "../docs/index-config.schema.json"

// TestSchemaFile verifies that the schema file is up to date: "make generate" writes it.
func TestSchemaFile(t *testing.T) {
	if *rewrite {
		noError(t, os.WriteFile(schemaFile, indexers.Schema(), 0o644))
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(want, indexers.Schema()) {
		t.Errorf("%s is not up to date; run make generate: %v", schemaFile, err)
	}
}
