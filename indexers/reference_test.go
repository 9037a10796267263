package indexers_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
)

// formatTarget formats a target as the documentation does: Kind.group namespace/name.
func formatTarget(t indexers.ReferenceTarget) string {
	text := t.Kind + t.Resource
	if t.Group != "" {
		text += "." + t.Group
	}
	text += " "
	if t.Namespace != "" {
		text += t.Namespace + "/"
	}
	text += t.Name
	if t.UID != "" {
		text += " " + t.UID
	}
	return text
}

// targetsOf returns the targets of an object. It verifies that the decoded object and its JSON have the same
// index keys.
func targetsOf(t *testing.T, r *indexers.Reference, object map[string]any) (targets []string) {
	t.Helper()
	document, err := json.Marshal(object)
	noError(t, err)
	functions := indexers.CompileIndexes(r.Index)
	keys := functions.Keys(object)[0]
	if diff := cmp.Diff(keys, functions.KeysJSON(document, nil)[0]); diff != "" {
		t.Errorf("keys of the reference %s (-decoded +document):\n%s", r.Name, diff)
	}
	for _, key := range keys {
		targets = append(targets, formatTarget(r.Target(key)))
	}
	return targets
}

var documentedReference = regexp.MustCompile("(?s)```yaml\n(- .*?)```\n\nrefers to (.*?)\\.\n\n")

// TestDocumentedReferences verifies that every reference of the documentation has the documented target.
func TestDocumentedReferences(t *testing.T) {
	data, err := os.ReadFile("../docs/config.md")
	noError(t, err)
	_, rest, _ := strings.Cut(string(data), "look at the following object:\n\n```yaml\n")
	text, rest, _ := strings.Cut(rest, "```")
	section, _, _ := strings.Cut(rest, "\n## ")
	var object map[string]any
	noError(t, yaml.Unmarshal([]byte(text), &object))
	found := documentedReference.FindAllStringSubmatch(section, -1)
	if n := strings.Count(section, "```yaml"); len(found) != n || n < 5 {
		t.Fatalf("%d of %d examples have a target, want all, and at least 5", len(found), n)
	}
	for _, example := range found {
		r := parse(t, "  - name: shops\n    match: {group: example.com, kind: Shop}\n    references:\n    "+
			strings.ReplaceAll(strings.TrimSpace(example[1]), "\n", "\n    ")+"\n").Resources[0]
		if diff := cmp.Diff(spans(example[2]), targetsOf(t, r.References[0], object)); diff != "" {
			t.Errorf("%stargets (-documented +got):\n%s", example[1], diff)
		}
	}
}

func TestOwnerReferences(t *testing.T) {
	object := m{"metadata": m{"namespace": "a", "name": "x", "ownerReferences": []any{
		m{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": true},
		m{"apiVersion": "other.example/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-2"},
		m{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-3"},
	}}}
	want := []string{"ReplicaSet.apps a/web u-1", "ReplicaSet.other.example a/web u-2", "Node a/n u-3"}
	if diff := cmp.Diff(want, targetsOf(t, indexers.OwnerReferences(), object)); diff != "" {
		t.Errorf("targets of the owner references (-want +got):\n%s", diff)
	}
}

// TestReferencesOfAResource verifies that fields that a reference reads are not pruned, and that a changed
// reference does not affect indexes.
func TestReferencesOfAResource(t *testing.T) {
	text := "  - name: w\n    match: {group: example.com, kind: Widget}\n    prune: {remove: [.spec.owner, .spec.blob]}\n    references:\n    - {name: owner, to: {group: example.com, kind: Team, namePath: .spec.owner.name}}\n"
	before := parse(t, text)
	if got := prunedPaths(before.Resources[0]); !cmp.Equal(got, []string{".spec.blob"}) {
		t.Errorf("pruned paths = %v, want only .spec.blob", got)
	}
	if len(before.Warnings) != 1 || before.Warnings[0].Code != "W001" {
		t.Errorf("warnings = %v, want only W001", before.Warnings)
	}
	if r, ok := before.Resources[0].Reference("owner"); !ok ||
		r.To != (indexers.TargetType{Group: "example.com", Kind: "Team"}) {
		t.Errorf(`Reference("owner") = %+v, %v; want the target kind Team in example.com`, r, ok)
	}
	if _, ok := before.Resources[0].Reference("other"); ok {
		t.Error(`Reference("other") found a reference, want none`)
	}
	for kind, want := range map[string]bool{"Person": true, "Team": false} {
		after := parse(t, strings.Replace(text, "kind: Team", "kind: "+kind, 1))
		c := indexers.DiffResources(before.Resources[0], after.Resources[0])
		if !reflect.DeepEqual(c, indexers.Change{References: want}) {
			t.Errorf("DiffResources with the kind %s = %+v, want another reference: %v", kind, c, want)
		}
	}
}

// parse returns a config with the given list of resources.
func parse(t testing.TB, resources string) *indexers.Config {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml",
		Data: []byte(strings.Replace(configWith(resources), "NAME", "n", 1))})
	noError(t, err)
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
