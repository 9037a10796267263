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
		inPlace        bool
	}{
		{"another notation", widgetsWith("", base), "# a comment\n" + widgetsWith("",
			"{path: '{.spec.a}', name: a, missing: Skip, order: Hash}"), nil, nil, nil, false},
		{"a new index", widgetsWith("", base), widgetsWith("", base, "{name: b, label: b}"), []string{"b"},
			nil, nil, true},
		{"a removed index", widgetsWith("", base, "{name: b, label: b}"), widgetsWith("", base), nil,
			[]string{"b"}, nil, true},
		{"another order of indexes", widgetsWith("", base, "{name: b, label: b}"),
			widgetsWith("", "{name: b, label: b}", base), nil, nil, nil, false},
		{"another path", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.b}"), []string{"a"},
			[]string{"a"}, nil, true},
		{"another type", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, type: Int}"),
			[]string{"a"}, []string{"a"}, nil, true},
		{"another order", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, order: Sorted}"),
			[]string{"a"}, []string{"a"}, nil, true},
		{"another condition", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, when: '@.x'}"),
			[]string{"a"}, []string{"a"}, nil, true},
		{"another missing value", widgetsWith("", "{name: a, path: .spec.a, default: x}"),
			widgetsWith("", "{name: a, path: .spec.a, default: y}"), []string{"a"},
			[]string{"a"}, nil, true},
		{"another group", widgetsWith("",
			"{name: a, path: .a, regex: {match: '(.)(.)', group: 1}}"),
			widgetsWith("", "{name: a, path: .a, regex: {match: '(.)(.)', group: 2}}"),
			[]string{"a"}, []string{"a"}, nil, true},
		{"another limit", widgetsWith("", base), widgetsWith("", "{name: a, path: .spec.a, maxValues: 1}"),
			[]string{"a"}, []string{"a"}, nil, true},
		{"storage", widgetsWith("", base), widgetsWith("storage: {mode: Object}", base), nil, nil,
			[]string{"storage"}, false},
		{"namespaces", widgetsWith("namespaces: {include: [a]}", base),
			widgetsWith("namespaces: {include: [b]}", base), nil, nil, []string{"namespaces"}, false},
		{"selectors", widgetsWith("", base), widgetsWith("selectors: {labels: a=b}", base,
			"{name: b, label: b}"), []string{"b"}, nil, []string{"selectors"}, false},
		{"prune", widgetsWith("", base), widgetsWith("prune: {remove: [.spec.z]}", base), nil, nil,
			[]string{"prune"}, false},
		{"keep nothing", widgetsWith(""), widgetsWith("keep: {paths: []}"), nil, nil, []string{"keep"}, false},
		{"a new index over a pruned field", widgetsWith("prune: {remove: [.spec.z]}", base),
			widgetsWith("prune: {remove: [.spec.z]}", base,
				"{name: z, path: .spec.z}"), []string{"z"}, nil, []string{"prune"}, false},
		{"match", widgetsWith("", base), strings.Replace(widgetsWith("", base), "kind: Widget",
			"resource: widgets", 1), nil, nil, []string{"match"}, false},
	}
	names := func(list []*indexers.Index) (out []string) {
		for _, i := range list {
			out = append(out, i.Name)
		}
		return out
	}
	for _, test := range tests {
		old, new := parse(t, test.old), parse(t, test.new)
		changes := indexers.Diff(old, new)
		if test.added == nil && test.removed == nil && test.fields == nil {
			if len(changes) > 0 {
				t.Errorf("%s: Diff = %+v, want no changes", test.reason, changes)
			}
			continue
		}
		if len(changes) != 1 {
			t.Errorf("%s: Diff returned %d changes, want 1", test.reason, len(changes))
			continue
		}
		c := changes[0]
		diff := cmp.Diff(test.added, names(c.Added)) + cmp.Diff(test.removed, names(c.Removed)) +
			cmp.Diff(test.fields, c.Fields)
		if diff != "" || c.Name != "w" || c.InPlace() != test.inPlace || c.Old != old.Resources[0] ||
			c.New != new.Resources[0] {
			t.Errorf("%s: Diff = %+v, InPlace = %v, want the resource w, InPlace = %v and (-want +got):\n%s",
				test.reason, c, c.InPlace(), test.inPlace, diff)
		}
	}
}

func TestDiffOfResources(t *testing.T) {
	one := widgetsWith("", "{name: a, path: .a}")
	two := one + strings.Replace(widgetsWith("", "{name: b, path: .b}"), "name: w", "name: v", 1)
	for _, test := range []struct{ old, new, want string }{
		{one, two, "+v"}, {two, one, "-v"}, {"", two, "+w +v"}, {two, "", "-w -v"},
	} {
		var old, new *indexers.Config
		if test.old != "" {
			old = parse(t, test.old)
		}
		if test.new != "" {
			new = parse(t, test.new)
		}
		var got []string
		for _, c := range indexers.Diff(old, new) {
			sign := "+"
			if c.New == nil {
				sign = "-"
			}
			got = append(got, sign+c.Name)
			if c.InPlace() || len(c.Added)+len(c.Removed) != 1 {
				t.Errorf("Diff = %+v, want one added or removed index, not in place", c)
			}
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("added and removed resources = %v, want %s", got, test.want)
		}
	}
}
