package indexers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers"
)

// TestPrunedIndexes verifies that fields that an index reads are not pruned, and that a warning reports them.
func TestPrunedIndexes(t *testing.T) {
	for _, test := range []struct {
		prune, index string
		want         bool
	}{
		{"remove: [.spec.a]", "path: .spec.a", true},
		{"remove: [.spec.a]", "path: .spec.a.b", true},
		{"remove: [.spec.a.b]", "path: .spec.a", false},
		{"remove: ['.spec.a[*].x']", "{path: .spec.b, when: '@.spec.a[?(@.y==1)]'}", false},
		{"remove: ['.spec.a[*].x']", "{path: .spec.b, when: '@.spec.a[?(@.x==1)]'}", true},
		{"remove: ['.spec.a[*].x.y']", "{path: .spec.b, when: '@.spec.a[?(@.x[?(@.y==1)])]'}", true},
		{"remove: [.spec.a]", "path: .spec.b", false},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[0].x'", true},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[*].y'", false},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[?(@.x==1)].y'", true},
		{"remove: ['.spec.a[*].x']", "path: '.spec.a[?(@.z==1)].y'", false},
		{"remove: [.spec.a]", "path: ..a", true},
		{"remove: [.spec.a]", "{path: .spec.b, when: '@.spec.a == 1'}", true},
		{"remove: [.spec.a]", "{path: .spec.b, when: '@.spec.c == 1'}", false},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[*]', key: [{name: k, path: .x}]}", true},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[*]', key: [{name: k, path: .y}]}", false},
		{"remove: ['.spec.a[*].x']", "{each: '.spec.a[?(@.x)]', key: [{name: k, path: .y}]}", true},
		{"presets: [ManagedFields]", "path: '.metadata.managedFields[*].manager'", true},
		{"presets: [LastApplied]", "annotation: kubectl.kubernetes.io/last-applied-configuration", true},
		{"presets: [LastApplied]", "annotation: a.b/c", false},
		{`remove: ['.metadata.annotations["a.b/c"]']`, "annotation: a.b/c", true},
		{`remove: ['.metadata.annotations["a.b/c"]']`, "label: a.b/c", false},
	} {
		index := strings.Trim(test.index, "{}")
		if strings.HasPrefix(test.index, "{each") { // the last brace belongs to the key
			index = strings.TrimSuffix(strings.TrimPrefix(test.index, "{"), "}")
		}
		text := strings.Replace(configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    prune: {"+
			test.prune+"}\n    indexes: [{name: i, "+index+"}]\n"), "NAME", "n", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Errorf("Parse with %s and %s: %v", test.prune, test.index, err)
			continue
		}
		prune := c.Resources[0].EffectivePrune()
		if got := len(prune.Presets)+len(prune.Remove) == 0; got != test.want {
			t.Errorf("%s and %s: EffectivePrune = %+v, want empty: %v", test.prune, test.index, prune,
				test.want)
		}
		if got := len(c.Warnings) > 0 && c.Warnings[len(c.Warnings)-1].Code == "W001"; got != test.want {
			t.Errorf("%s and %s: warnings = %v, want W001: %v", test.prune, test.index, c.Warnings, test.want)
		}
	}
}

// TestKeptFields verifies that the effective keep has the fields that indexes, conditions and references
// read.
func TestKeptFields(t *testing.T) {
	for body, want := range map[string]string{
		"keep: {paths: []}":                                                                       `[]`,
		"keep: {paths: [.spec.a, '.status.b[*].c']}":                                              `[".spec.a" ".status.b[*].c"]`,
		"keep: {paths: [.spec.a]}, indexes: [{name: i, path: '.spec.b[0].c'}]":                    `[".spec.a" ".spec.b[*].c"]`,
		"keep: {paths: []}, indexes: [{name: i, path: '.s.c[?(@.type==\"Ready\")].status'}]":      `[".s.c[*].status" ".s.c[*].type"]`,
		"keep: {paths: []}, indexes: [{name: i, path: '.spec.b[*]'}]":                             `[".spec.b"]`,
		"keep: {paths: []}, indexes: [{name: i, path: .spec..b}]":                                 `[".spec"]`,
		"keep: {paths: []}, indexes: [{name: i, path: .spec.b, when: '@.spec.c == 1'}]":           `[".spec.b" ".spec.c"]`,
		"keep: {paths: []}, references: [{name: r, to: {group: g, kind: K, namePath: .spec.d}}]":  `[".metadata.namespace" ".spec.d"]`,
		"keep: {paths: []}, indexes: [{name: i, each: '.spec.a[*]', key: [{name: k, path: .x}]}]": `[".spec.a[*].x"]`,
		"prune: {presets: [ManagedFields]}, indexes: [{name: i, path: .spec.b}]":                  `[]`,
	} {
		text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, "+body+"}\n"),
			"NAME", "n", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Errorf("Parse with %s: %v", body, err)
			continue
		}
		kept := c.Resources[0].EffectiveKeep().Paths
		if got := fmt.Sprintf("%q", kept); got != want || (kept == nil) != strings.HasPrefix(body, "prune") {
			t.Errorf("%s: EffectiveKeep has the paths %s, want %s", body, got, want)
		}
	}
}

// TestKeepWhole verifies that EffectiveKeep has the conditions under which objects are kept whole.
func TestKeepWhole(t *testing.T) {
	text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, keep: {paths: [.spec.a], "+
		"whole: {labels: 'a in (b,c)', when: '@.spec.mine == true'}}}\n"), "NAME", "n", 1)
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Resources[0]
	want := indexers.Keep{Paths: []string{".spec.a"}, WholeLabels: "a in (b,c)", WholeWhen: "@.spec.mine == true"}
	if diff := cmp.Diff(want, r.EffectiveKeep()); diff != "" {
		t.Errorf("EffectiveKeep (-want +got):\n%s", diff)
	}
}

// TestKeepReplacesPrune verifies that a resource's keep replaces a default prune, and the reverse.
func TestKeepReplacesPrune(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		keep, prune := "keep: {paths: [.spec]}", "prune: {presets: [ManagedFields]}"
		resource, defaults := keep, prune
		if !keeps {
			resource, defaults = prune, keep
		}
		text := strings.Replace(configWith("  - {name: w, match: {group: example.com, kind: Widget}, "+resource+"}\n"),
			"NAME", "n", 1)
		text = strings.Replace(text, "  resources:", "  defaults: {"+defaults+"}\n  resources:", 1)
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		r := c.Resources[0]
		if (r.Keep.Paths != nil) != keeps || (r.Prune.Presets != nil) == keeps {
			t.Errorf("%s with the default %s: Keep = %+v, Prune = %+v, want only the first", resource,
				defaults,
				r.Keep, r.Prune)
		}
	}
}
