package indexers_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
)

// compileIndex returns a compiled index.
func compileIndex(t testing.TB, text string) *indexers.Index {
	t.Helper()
	return compile(t, text).Indexes()[0]
}

func TestTypedValues(t *testing.T) {
	values := []any{"2026-01-02T00:00:00Z", "2026-01-01T01:00:00+01:00", "10", int64(9), 2.5, true, "1Gi", "90m",
		"10.0.0.1", "v1.2"}
	tests := []struct {
		typ     string
		want    []string
		skipped uint64
	}{
		{"String", []string{"2026-01-02T00:00:00Z", "2026-01-01T01:00:00+01:00", "10", "1Gi", "90m",
			"10.0.0.1", "v1.2"}, 3},
		{"Int", []string{"10", "9"}, 8},
		{"Number", []string{"10", "9", "2.5"}, 7},
		{"Bool", []string{"true"}, 9},
		{"Quantity", []string{"10", "9", "2.5", "1073741824", "0.09"}, 5},
		{"Duration", []string{"1h30m0s"}, 9},
		{"Time", []string{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"}, 8},
		{"IP", []string{"10.0.0.1"}, 9},
		{"SemVer", []string{"10.0.0", "9.0.0", "2.5.0", "1.2.0"}, 6},
	}
	for _, order := range []string{"Hash", "Sorted"} {
		for _, test := range tests {
			f := compile(t, "{name: i, path: '.spec.a[*]', type: "+test.typ+", order: "+order+"}")
			keys := keysOf(t, f, spec(m{"a": values}))
			var got []string
			for _, k := range keys {
				got = append(got, f.Indexes()[0].Parts(k)...)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("order %s, type %s: parts of the keys (-want +got):\n%s", order, test.typ, diff)
			}
			if s := f.Stats()[0]; s.SkippedType != test.skipped {
				t.Errorf("order %s, type %s: Stats = %+v, want SkippedType %d", order, test.typ, s,
					test.skipped)
			}
			if order == "Hash" && cmp.Diff(keys, got) != "" {
				t.Errorf("order Hash, type %s: keys = %q, want their parts %q", test.typ, keys, got)
			}
		}
	}
}

func TestIndexKey(t *testing.T) {
	tests := []struct {
		reason, index string
		parts         []string
		want          string
	}{
		{"a text", "{name: i, path: .a}", []string{"x/y"}, "x/y"},
		{"a sorted text", "{name: i, path: .a, order: Sorted}", []string{"x\x00"}, "x\x00"},
		{"a canonical form", "{name: i, path: .a, type: Quantity}", []string{"1Ki"}, "1024"},
		{"parts", "{name: i, key: [{name: x, path: .x}, {name: y, path: .y, type: Int}]}",
			[]string{"a/b", "07"}, `a\/b/7`},
		{"null", "{name: i, key: [{name: x, path: .x}, {name: y, path: .y, type: Int}]}",
			[]string{"a", indexers.Null}, "a/\x00"},
		{"the parts of an owner", "{name: i, each: '.metadata.ownerReferences[*]', key: [{name: kind, path: .kind}, {name: name, path: .name}]}", []string{"House", "home"}, "House/home"},
		{"sorted parts", "{name: i, order: Sorted, key: [{name: x, path: .x}, {name: y, path: .y}]}",
			[]string{"a", "b\x00"}, "a\x00\x01b\x00\xff\x00\x01"},
	}
	for _, test := range tests {
		i := compileIndex(t, test.index)
		got, err := i.Key(test.parts...)
		if err != nil || got != test.want {
			t.Errorf("%s: Key(%q) = %q, %v; want %q", test.reason, test.parts, got, err, test.want)
		}
		back := i.Parts(got)
		if again, err := i.Key(back...); err != nil || again != got {
			t.Errorf("%s: Key(Parts(%q)) = Key(%q) = %q, %v; want the same key", test.reason, got, back,
				again,
				err)
		}
	}
	composite := compileIndex(t, "{name: i, order: Sorted, key: [{name: x, path: .x}, {name: y, path: .y}]}")
	if got := composite.Parts("no tuple"); cmp.Diff([]string{"no tuple"}, got) != "" {
		t.Errorf(`Parts of a text that is not a key = %q, want the text`, got)
	}
}

func TestKeyErrors(t *testing.T) {
	tests := []struct {
		index string
		parts []string
		want  string
		part  int
	}{
		{"{name: i, path: .a}", nil, "the number of parts is 0, want 1", -1},
		{"{name: i, path: .a}", []string{"a", "b"}, "parts is 2", -1},
		{"{name: i, path: .a, type: Int}", []string{"x"}, `"x" is not of type Int; write it like 42`, 0},
		{"{name: i, key: [{name: x, path: .x}, {name: y, path: .y, type: Time}]}", []string{"a"},
			"parts is 1, want 2 (x, y)", -1},
		{"{name: i, key: [{name: x, path: .x}, {name: y, path: .y, type: Time}]}", []string{"a", "now"},
			"not of type Time", 1},
	}
	for _, test := range tests {
		_, err := compileIndex(t, test.index).Key(test.parts...)
		var e *indexers.OperandError
		if !errors.As(err, &e) || e.Part != test.part || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Key(%q): got the error %v, want %q about part %d", test.index, test.parts, err,
				test.want, test.part)
		}
	}
	if _, err := compileIndex(t, "{name: i, path: .a, type: Int}").Prefix("1"); err == nil ||
		!strings.Contains(err.Error(), "use a range") {
		t.Errorf("Prefix of an int: got the error %v, want the advice to use a range", err)
	}
	if _, err := compileIndex(t, "{name: i, path: .a}").Prefix(); err == nil {
		t.Error("Prefix() without parts returned no error")
	}
}

// TestPrefixes verifies that a key begins with Prefix(parts) exactly if it begins with these parts.
func TestPrefixes(t *testing.T) {
	for _, order := range []string{"Hash", "Sorted"} {
		i := compileIndex(t, "{name: i, order: "+order+
			", key: [{name: x, path: .x}, {name: y, path: .y, type: Int}, {name: z, path: .z}]}")
		key, err := i.Key("a/b", "7", "web-1")
		noError(t, err)
		for _, test := range []struct {
			parts []string
			want  bool
		}{
			{[]string{"a/b"}, true}, {[]string{"a"}, false}, {[]string{"a/b/"},
				false}, {[]string{"a/b", "7"}, true},
			{[]string{"a/b", "70"}, false}, {[]string{"a/b", "7", "web"},
				true}, {[]string{"a/b", "7", "web-1"}, true},
			{[]string{"a/b", "7", ""}, true}, {[]string{"a/b", "7", "x"}, false},
		} {
			prefix, err := i.Prefix(test.parts...)
			if err != nil || strings.HasPrefix(key, prefix) != test.want {
				t.Errorf("order %s: Prefix(%q) = %q, %v; want a prefix of %q: %v", order, test.parts, prefix,
					err, key, test.want)
			}
		}
	}
	i := compileIndex(t, "{name: i, path: .a, order: Sorted}")
	if prefix, err := i.Prefix("a/"); prefix != "a/" || err != nil {
		t.Errorf(`Prefix("a/") = %q, %v; want "a/"`, prefix, err)
	}
}

// TestResourceOf verifies that a type has the distinct indexes and references of all matching resources,
// where indexes of the same name are prefixed with the name of their resource, and that their settings must
// be equal.
func TestResourceOf(t *testing.T) {
	config := parse(t, `
  - name: a
    match: {group: g, version: v1, resource: ws}
    indexes: [{name: same, path: .spec.a}, {name: other, path: .spec.b}]
    references: [{name: r, to: {group: g, resource: xs, namePath: .spec.a}}]
  - name: b
    match: {group: g, kind: W}
    indexes: [{name: same, path: .spec.a}, {name: other, path: .spec.c}]
  - name: c
    match: {group: g, version: v2, resource: ws}
    indexes: [{name: second, path: .spec.a}]
    references: [{name: r2, to: {group: g, resource: xs, namePath: .spec.a}}]
`)
	for version, want := range map[string][]string{
		"v1": {"same", "a/other", "b/other", "r"},
		"v2": {"same", "other", "second", "r2"},
	} {
		gvr := schema.GroupVersionResource{Group: "g", Version: version, Resource: "ws"}
		merged, err := config.ResourceOf(gvr, "W")
		var got []string
		for _, index := range merged.Indexes {
			got = append(got, index.Name)
		}
		for _, reference := range merged.References {
			got = append(got, reference.Name)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("indexes and references of version %s = %q, %v; want %q", version, got, err, want)
		}
	}
	for settings, want := range map[string]string{
		"storage: {mode: Packed}":         "",
		"selectors: {labels: a=b}":        "selectors",
		"namespaces: {include: [a]}":      "namespaces",
		"keep: {paths: [.spec]}":          "keep",
		"prune: {remove: [.spec.unused]}": "prune",
	} {
		config := parse(t, "\n  - {name: a, match: {group: g, resource: ws}, "+settings+
			"}\n  - {name: b, match: {group: g, kind: W}}\n")
		gvr := schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "ws"}
		merged, err := config.ResourceOf(gvr, "W")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "different "+want) {
			t.Errorf("with %s: got the error %v, want one about %q", settings, err, want)
		}
		if want == "" && merged.Storage.Mode != "Packed" {
			t.Errorf("with %s: the storage mode is %q, want the only one that is set", settings, merged.Storage.Mode)
		}
		if named, err := config.ResourceOf(gvr, "W", "a"); err != nil || named.Name != "a" {
			t.Errorf("with %s: ResourceOf the resource a = %v, %v", settings, named.Name, err)
		}
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
