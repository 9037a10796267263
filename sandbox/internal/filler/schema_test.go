package filler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func parseSchema(t *testing.T, text string) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestSchemaGenerator(t *testing.T) {
	schema := parseSchema(t, `
type: object
properties:
  apiVersion: {type: string}
  metadata: {type: object}
  spec:
    type: object
    required: [mode, size, items]
    properties:
      mode: {type: string, enum: [fast]}
      size: {type: integer, minimum: 7, maximum: 7}
      optional: {type: string, enum: [x]}
      patterned: {type: string, pattern: "^a+$"}
      defaulted: {type: string, default: d}
      items:
        type: array
        minItems: 1
        x-kubernetes-list-type: map
        items: {type: object, required: [key], properties: {key: {type: string}}}
`)
	item := []any{map[string]any{"key": "key-0"}}
	tests := map[string]struct {
		depth int
		want  map[string]any
	}{
		"rich": {richDepth, map[string]any{"mode": "fast", "size": int64(7), "items": item,
			"optional": "x"}},
		"minimal": {0, map[string]any{"mode": "fast", "size": int64(7), "items": item}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g, err := newSchemaGenerator(schema, Small, test.depth)
			if err != nil {
				t.Fatal(err)
			}
			got := g.content(newIdentity(1, 1, 1)).body
			if diff := cmp.Diff(map[string]any{"spec": test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSchemaGeneratorNamesWhatItCannotDo(t *testing.T) {
	schema := parseSchema(t, `
type: object
properties:
  spec:
    type: object
    required: [hosts]
    properties:
      hosts:
        type: array
        items: {type: object, required: [ip], properties: {ip: {type: string, format: ipv4}}}
`)
	_, err := newSchemaGenerator(schema, Small, 0)
	if err == nil || !strings.Contains(err.Error(), "spec.hosts[].ip") {
		t.Errorf("want the field's path, got %v", err)
	}
}

func TestStringValue(t *testing.T) {
	id := newIdentity(1, 1, 1)
	tests := map[string]struct {
		schema map[string]any
		check  func(string) bool
	}{
		"at least": {map[string]any{"minLength": int64(40)}, func(s string) bool { return len(s) >= 40 }},
		"at most":  {map[string]any{"maxLength": int64(3)}, func(s string) bool { return len(s) == 3 }},
		"date-time": {map[string]any{"format": "date-time"},
			func(s string) bool { return s == timestamp(id.created) }},
		"plain": {nil, func(s string) bool { return strings.HasPrefix(s, "name-") }},
	}
	for name, test := range tests {
		if got := stringValue(id, test.schema, "name", false); !test.check(got) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
