package packaging_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
)

// configRows are the fields of a resource in a config. They show each keyword of the schema, valid and
// invalid.
var configRows = []string{
	`references: [{name: r, to: {namePath: .spec.x}}]`,
	`references: [{name: r, to: {kind: Secret, namePath: .spec.x}}]`,
	`references: [{name: r, to: {group: "", apiVersionPath: .a, kind: Secret, namePath: .spec.x}}]`,
	`references: [{name: r, to: {group: "", resource: secrets, kind: Secret, namePath: .spec.x}}]`,
	`references: [{name: r, to: {groupPath: .a, resource: secrets, namePath: .spec.x}}]`,
	`references: [{name: r, to: {group: "", kind: "", namePath: .spec.x}}]`,
	`references: [{name: r, to: {group: "", kind: Secret, name: .spec.x}}]`,
	`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, namespace: V}}]`,
	`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, namespace: v, scope: Cluster}}]`,
	`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, scope: Cluster}}]`,
	`references: [{name: owners, to: {group: "", kind: Secret, namePath: .spec.x}}]`,
	`indexes: [{name: i, key: [{name: a, path: .a}], missing: Skip}]`,
	`indexes: [{name: i, path: .a, each: ".b[*]"}]`, `indexes: [{name: name, path: .a}]`,
	`indexes: [{name: i, path: .a, missing: {}}]`, `indexes: [{name: i, path: [a]}]`,
	`indexes: [{name: i, path: .a, regex: {match: a, group: -1}}]`,
	`indexes: [{name: i, path: .a, regex: {match: a, group: a}}]`,
	`indexes: [{name: i, paths: []}]`, `indexes: [{name: i, path: .a, default: ""}]`,
	`indexes: [{name: i, path: .a, when: ""}]`, `indexes: [{name: i, path: .a, when: '@.a', whenCEL: self.a}]`,
	`metrics: [{name: m, help: M., labels: [{name: a, path: .a, missing: AsNull}]}]`,
	`metrics: [{name: m, help: M., value: {path: .a, type: Int, missing: Report}}]`,
	`namespaces: {}`, `selectors: {}`, `prune: {}`, `storage: {}`, `namespaces: {include: []}`,
	`namespaces: {include: ["A"]}`,
}

// TestSchemaIsAsStrictAsTheDecoder verifies that the editors' schema of configs rejects the configs that the
// decoder rejects, and no others.
func TestSchemaIsAsStrictAsTheDecoder(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/index-config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		t.Helper()
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return schema.Validate(value)
	}
	valid := 0
	for _, row := range configRows {
		text := "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\n" +
			"spec:\n  resources:\n  - name: w\n    match: {group: \"\", kind: Widget}\n    " + row + "\n"
		_, decoded := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
		validated := validate(text)
		if (decoded == nil) != (validated == nil) {
			t.Errorf("%s: the decoder returned %v and the schema %v, want errors of both or of neither", row, decoded,
				validated)
		}
		if decoded == nil {
			valid++
		}
	}
	if valid == 0 || valid == len(configRows) {
		t.Errorf("%d of %d rows are valid, want some", valid, len(configRows))
	}
	files, err := filepath.Glob("../../../testdata/indexes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(string(text)); err != nil {
			t.Errorf("the schema rejects %s: %v", file, err)
		}
	}
}
