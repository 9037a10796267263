package readapi_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
		t.Errorf("(-want +got):\n%s", diff)
	}
}
