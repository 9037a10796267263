package indexers_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/indexers"
)

// parse returns a config with the given list of resources.
func parse(t testing.TB, resources string) *indexers.Config {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml",
		Data: []byte(strings.Replace(configWith(resources), "NAME", "n", 1))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// widgetsWith returns the YAML of the resource w with these fields and indexes.
func widgetsWith(fields string, indexes ...string) string {
	text := "  - name: w\n    match: {group: example.com, kind: Widget}\n"
	if fields != "" {
		text += "    " + fields + "\n"
	}
	if len(indexes) > 0 {
		text += "    indexes:\n    - " + strings.Join(indexes, "\n    - ") + "\n"
	}
	return text
}

func TestDiff(t *testing.T) {
	base := "{name: a, path: .spec.a}"
	tests := []struct {
		reason         string
		old, new       string
		added, removed []string
		fields         []string
	}{
		{"another notation", widgetsWith("", base), "# a comment\n" + widgetsWith("",
			"{path: '{.spec.a}', name: a, missing: Skip, order: Hash}"), nil, nil, nil},
		{"a new index", widgetsWith("", base), widgetsWith("", base, "{name: b, label: b}"), []string{"b"},
			nil, nil},
		{"a removed index", widgetsWith("", base, "{name: b, label: b}"), widgetsWith("", base), nil,
			[]string{"b"}, nil},
		{"another order of indexes", widgetsWith("", base, "{name: b, label: b}"),
			widgetsWith("", "{name: b, label: b}", base), nil, nil, nil},
		{"another path", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.b}"), []string{"a"},
			[]string{"a"}, nil},
		{"another type", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, type: Int}"),
			[]string{"a"}, []string{"a"}, nil},
		{"another order", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, order: Sorted}"),
			[]string{"a"}, []string{"a"}, nil},
		{"another condition", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, when: '@.x'}"),
			[]string{"a"}, []string{"a"}, nil},
		{"another missing value", widgetsWith("", "{name: a, path: .spec.a, default: x}"),
			widgetsWith("", "{name: a, path: .spec.a, default: y}"), []string{"a"},
			[]string{"a"}, nil},
		{"another group", widgetsWith("",
			"{name: a, path: .a, regex: {match: '(.)(.)', group: 1}}"),
			widgetsWith("", "{name: a, path: .a, regex: {match: '(.)(.)', group: 2}}"),
			[]string{"a"}, []string{"a"}, nil},
		{"another limit", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, maxValues: 1}"),
			[]string{"a"}, []string{"a"}, nil},
		{"storage", widgetsWith("", base), widgetsWith("storage: {mode: Object}", base), nil, nil,
			[]string{"storage"}},
		{"namespaces", widgetsWith("namespaces: {include: [a]}", base),
			widgetsWith("namespaces: {include: [b]}", base), nil, nil, []string{"namespaces"}},
		{"selectors", widgetsWith("", base), widgetsWith("selectors: {labels: a=b}", base,
			"{name: b, label: b}"), []string{"b"}, nil, []string{"selectors"}},
		{"prune", widgetsWith("", base), widgetsWith("prune: {remove: [.spec.z]}", base), nil, nil,
			[]string{"prune"}},
		{"keep nothing", widgetsWith(""), widgetsWith("keep: {paths: []}"), nil, nil, []string{"keep"}},
		{"a new index over a pruned field", widgetsWith("prune: {remove: [.spec.z]}", base),
			widgetsWith("prune: {remove: [.spec.z]}", base,
				"{name: z, path: .spec.z}"), []string{"z"}, nil, []string{"prune"}},
		{"match", widgetsWith("", base), strings.Replace(widgetsWith("", base), "kind: Widget",
			"resource: widgets", 1), nil, nil, []string{"match"}},
	}
	names := func(list []*indexers.Index) (out []string) {
		for _, i := range list {
			out = append(out, i.Name)
		}
		return out
	}
	for _, test := range tests {
		old, new := parse(t, test.old), parse(t, test.new)
		c := indexers.DiffResources(old.Resources[0], new.Resources[0])
		diff := cmp.Diff(test.added, names(c.Added)) + cmp.Diff(test.removed, names(c.Removed)) +
			cmp.Diff(test.fields, c.Fields)
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}
