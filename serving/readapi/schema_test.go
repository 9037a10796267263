package readapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/serving/readapi"
)

// TestConform verifies that unknown fields and nulls are dropped, and defaults are set, also inside other
// defaults.
func TestConform(t *testing.T) {
	const schema = `{type: object, properties: {
		spec: {type: object, default: {}, properties: {
			n: {type: integer, default: 4}, s: {type: string}, maybe: {type: string, nullable: true},
			list: {type: array, items: {type: object, default: {}, properties: {a: {type: string, default: x}}}},
			map: {type: object, additionalProperties: {type: object, properties: {a: {type: string, default: x}}}}}},
		status: {type: object, properties: {phase: {type: string, default: new}}}}}`
	data, err := json.Marshal(yamlMap(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	typ := completeType(t, data)
	for name, tt := range map[string]struct {
		object, want string
		unknown      []string
	}{
		"nothing":          {`{kind: A}`, `{kind: A, spec: {n: 4}}`, nil},
		"null for default": {`{spec: null}`, `{spec: {n: 4}}`, nil},
		"nulls":            {`{spec: {n: null, s: null, maybe: null}}`, `{spec: {n: 4, maybe: null}}`, nil},
		"in lists": {`{spec: {n: 1, list: [{}, {a: y, b: z}, null]}}`,
			`{spec: {n: 1, list: [{a: x}, {a: y}, {a: x}]}}`, []string{"spec.list[1].b"}},
		"in maps": {`{spec: {n: 1, map: {k: {}, l: {a: y, c: {d: 1}}}}}`,
			`{spec: {n: 1, map: {k: {a: x}, l: {a: y}}}}`, []string{"spec.map.l.c"}},
		"an empty status": {`{spec: {n: 1}, status: {}, other: 1}`, `{spec: {n: 1}, status: {phase: new}}`,
			[]string{"other"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := yamlMap(t, tt.object)
			if diff := cmp.Diff(tt.unknown, typ.Versions[0].Conform(got)); diff != "" {
				t.Errorf("unknown (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(yamlMap(t, tt.want), got); diff != "" {
				t.Errorf("pruned object (-want +got):\n%s", diff)
			}
		})
	}
}

func completeType(t *testing.T, schema []byte) readapi.Type {
	t.Helper()
	typ := readapi.Type{Group: "example.com", Versions: []readapi.Version{{Name: "v1", Schema: schema}}}
	typ.Names.Plural, typ.Names.Kind = "widgets", "Widget"
	if err := typ.Complete(); err != nil {
		t.Fatal(err)
	}
	return typ
}

func TestPrune(t *testing.T) {
	const schema = `{type: object, properties: {
		spec: {type: object, properties: {
			known: {type: string}, open: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {part: {type: object}}},
			map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
			any: {type: object, additionalProperties: true},
			list: {type: array, items: {type: object, properties: {a: {type: string}}}}, bare: {type: array},
			template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}}}}`
	const object = `{apiVersion: v1, kind: A, metadata: {name: a, odd: 1}, other: 1, spec: {
		known: x, unknown: {y: z}, open: {x: {y: 1}, part: {x: 1}}, map: {k: {a: x, b: y}}, any: {k: {b: y}},
		list: [{a: x, b: y}, 7], bare: [{b: y}], template: {apiVersion: v1, kind: B, metadata: {name: b}, spec: {x: 1}, more: 1}}}`
	const want = `{apiVersion: v1, kind: A, metadata: {name: a, odd: 1}, spec: {
		known: x, open: {x: {y: 1}, part: {}}, map: {k: {a: x}}, any: {k: {b: y}},
		list: [{a: x}, 7], bare: [{b: y}], template: {apiVersion: v1, kind: B, metadata: {name: b}, spec: {}}}}`
	data, err := json.Marshal(yamlMap(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	typ := completeType(t, data)
	got := yamlMap(t, object)
	typ.Versions[0].Conform(got)
	if diff := cmp.Diff(yamlMap(t, want), got); diff != "" {
		t.Errorf("Conform (-want +got):\n%s", diff)
	}
}
