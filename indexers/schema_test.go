package indexers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/indexers"
)

const schemaFile = "../docs/index-config.schema.json"

// TestSchemaFile verifies that the schema file is up to date: "make generate" writes it.
func TestSchemaFile(t *testing.T) {
	if *rewrite {
		if err := os.WriteFile(schemaFile, indexers.Schema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil || !bytes.Equal(want, indexers.Schema()) {
		t.Errorf("%s is not up to date; run make generate: %v", schemaFile, err)
	}
}

// validator validates documents against the subset of JSON Schema that the schema uses.
type validator struct{ t testing.TB }

// findProblem returns the position and the keyword that a value violates, or "" if it is valid.
func (v validator) findProblem(schema map[string]any, value any, at string) string {
	for _, keyword := range []string{"type", "enum", "pattern", "minLength", "minimum", "maximum",
		"minItems", "items", "properties", "required", "additionalProperties", "oneOf", "anyOf", "allOf", "not", "minProperties"} {
		if wanted, ok := schema[keyword]; ok && !v.checkKeyword(schema, keyword, wanted, value) {
			return fmt.Sprintf("%s: %s", at, keyword)
		}
	}
	for keyword := range schema {
		if !slices.Contains(strings.Fields("type enum pattern minLength minimum maximum minItems items properties required additionalProperties oneOf anyOf allOf not minProperties description default title $schema"), keyword) {
			v.t.Errorf("the validator does not support the keyword %s", keyword)
		}
	}
	list, _ := value.([]any)
	if items, ok := schema["items"].(map[string]any); ok {
		for i, e := range list {
			if p := v.findProblem(items, e, fmt.Sprintf("%s[%d]", at, i)); p != "" {
				return p
			}
		}
	}
	if fields, ok := value.(map[string]any); ok {
		properties, _ := schema["properties"].(map[string]any)
		for name, field := range fields {
			if property, ok := properties[name].(map[string]any); ok {
				if p := v.findProblem(property, field, at+"."+name); p != "" {
					return p
				}
			}
		}
	}
	return ""
}

// checkKeyword reports whether a value satisfies one keyword of a schema.
func (v validator) checkKeyword(schema map[string]any, keyword string, keywordValue, value any) bool {
	text, isText := value.(string)
	number, isNumber := value.(float64)
	list, isList := value.([]any)
	fields, isMap := value.(map[string]any)
	switch keyword {
	case "type":
		switch keywordValue {
		case "string":
			return isText
		case "integer":
			return isNumber && number == math.Trunc(number)
		case "boolean":
			_, is := value.(bool)
			return is
		case "array":
			return isList
		default:
			return isMap
		}
	case "enum":
		return slices.ContainsFunc(keywordValue.([]any), func(w any) bool {
			return reflect.DeepEqual(w,
				value)
		})
	case "pattern":
		return !isText || regexp.MustCompile(keywordValue.(string)).MatchString(text)
	case "minLength":
		return !isText || len(text) >= int(keywordValue.(float64))
	case "minimum":
		return !isNumber || number >= keywordValue.(float64)
	case "maximum":
		return !isNumber || number <= keywordValue.(float64)
	case "minItems":
		return !isList || len(list) >= int(keywordValue.(float64))
	case "required":
		return !isMap || !slices.ContainsFunc(keywordValue.([]any),
			func(name any) bool { return fields[name.(string)] == nil && !has(fields, name.(string)) })
	case "additionalProperties":
		if fieldSchema, ok := keywordValue.(map[string]any); ok { // of fields with any name
			for _, one := range fields {
				if v.findProblem(fieldSchema, one, "") != "" {
					return false
				}
			}
			return true
		}
		for name := range fields {
			if !has(schema["properties"].(map[string]any), name) {
				return false
			}
		}
	case "allOf":
		return !slices.ContainsFunc(keywordValue.([]any),
			func(one any) bool { return v.findProblem(one.(map[string]any), value, "") != "" })
	case "anyOf":
		return slices.ContainsFunc(keywordValue.([]any),
			func(one any) bool { return v.findProblem(one.(map[string]any), value, "") == "" })
	case "not":
		return v.findProblem(keywordValue.(map[string]any), value, "") != ""
	case "minProperties":
		return !isMap || len(fields) >= int(keywordValue.(float64))
	case "oneOf":
		matching := 0
		for _, choice := range keywordValue.([]any) {
			if v.findProblem(choice.(map[string]any), value, "") == "" {
				matching++
			}
		}
		return matching == 1
	}
	return true
}

func has(fields map[string]any, name string) bool {
	_, ok := fields[name]
	return ok
}

// checkSchema returns the problem for which the schema rejects a config, or "" if it accepts the config.
func checkSchema(t testing.TB, data []byte) string {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(indexers.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err.Error()
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	value = nil
	if err := json.Unmarshal(asJSON, &value); err != nil {
		t.Fatal(err)
	}
	return validator{t}.findProblem(schema, value, "")
}

// TestSchemaIsAsStrictAsTheDecoder verifies that the schema rejects the configs that the decoder rejects, and
// no others.
func TestSchemaIsAsStrictAsTheDecoder(t *testing.T) {
	for _, resource := range []string{
		`references: [{name: r, to: {namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", namePath: .spec.x}}]`,
		`references: [{name: r, to: {kind: Secret, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", apiVersionPath: .a, kind: Secret, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", groupPath: .a, kind: Secret, kindPath: .b, namePath: .spec.x, namespace: v, namespacePath: .c}}]`,
		`references: [{name: r, to: {groupPath: .a, apiVersionPath: .a, kind: Secret, namePath: .spec.x}}]`,
		`references: [{name: r, to: {groupPath: .a, resource: secrets, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", resource: secrets, kind: Secret, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", resource: secrets, kindPath: .a, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", kind: "", namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", kind: .a, namePath: .spec.x}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, name: .spec.x}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, namespace: V}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, namespace: v, scope: Cluster}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, namespacePath: .v, scope: Cluster}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, scope: Cluster}}]`,
		`references: [{name: r, to: {group: "", kind: Secret, namePath: .spec.x, scope: Namespaced}}]`,
		`indexes: [{name: i, key: [{name: a, path: .a}], missing: Skip}]`,
		`indexes: [{name: i, path: .a, each: ".b[*]"}]`,
		`indexes: [{name: name, path: .a}]`,
		`references: [{name: owners, to: {group: "", kind: Secret, namePath: .spec.x}}]`,
		`metrics: [{name: m, help: M., labels: [{name: a, path: .a, missing: Skip}]}]`,
		`metrics: [{name: m, help: M., labels: [{name: a, path: .a, missing: AsNull}]}]`,
		`metrics: [{name: m, help: M., value: {path: .a, type: Int, missing: AsNull}}]`,
		`metrics: [{name: m, help: M., value: {path: .a, type: Int, missing: Report}}]`,
		`metrics: [{name: m, help: M., states: {name: s, path: .a, values: [a], missing: AsNull}}]`,
		`namespaces: {}`, `selectors: {}`, `prune: {}`, `storage: {}`,
		`indexes: [{name: i, path: .a, missing: {}}]`,
		`indexes: [{name: i, path: .a, regex: {match: a, group: -1}}]`,
		`indexes: [{name: i, path: .a, regex: {match: a, group: a}}]`,
		`indexes: [{name: i, paths: []}]`, `indexes: [{name: i, key: []}]`,
		`indexes: [{name: i, path: .a, default: ""}]`,
		`indexes: [{name: i, path: .a, when: ""}]`, `indexes: [{name: i, path: .a, when: {cel: a}}]`,
		`indexes: [{name: i, path: .a, when: '@.a', whenCEL: self.a}]`, `indexes: [{name: i, path: [a]}]`,
		`match: {group: "", kind: "Wid*"}`,
		`namespaces: {include: []}`, `namespaces: {include: ["A"]}`,
	} {
		text := "  - name: w\n    " + resource + "\n"
		if !strings.HasPrefix(resource, "match") {
			text += "    match: {group: \"\", kind: Widget}\n"
		}
		data := []byte(strings.Replace(configWith(text), "NAME", "test", 1))
		_, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: data})
		if p := checkSchema(t, data); (p == "") != (err == nil) {
			t.Errorf("%s: the decoder returned %v and the schema %q, want errors of both or of neither",
				resource,
				err, p)
		}
	}
}

func TestSchemaAcceptsGoodConfigs(t *testing.T) {
	good := [][]byte{[]byte(completeConfig), []byte(exampleConfig)}
	for _, index := range manyIndexes {
		good = append(
			good, []byte(strings.Replace(
				configWith("  - name: w\n    match: {group: \"\", kind: Widget}\n    indexes:\n    - "+index+
					"\n"), "NAME", "test", 1)))
	}
	files, err := filepath.Glob("../testdata/indexes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, data)
	}
	for _, data := range good {
		if p := checkSchema(t, data); p != "" {
			t.Errorf("the schema rejects a valid config: %s in\n%s", p, data)
		}
	}
}
