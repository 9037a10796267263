package testdata_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestProblemsAreFound verifies that the checks above can fail. Each case breaks a valid object in one way.
func TestProblemsAreFound(t *testing.T) {
	const head = "apiVersion: demo.crdcache.dev/v1\nkind: Workload\nmetadata: {name: x}\n"
	tests := map[string]struct {
		yaml string
		want string
	}{
		"sound":            {`spec: {environment: e, tier: batch, image: i, replicas: 1}`, ""},
		"missing spec":     {``, `required field "spec"`},
		"missing required": {`spec: {environment: e, tier: batch, replicas: 1}`, `required field "image"`},
		"unknown field": {`spec: {environment: e, tier: batch, image: i, replicas: 1, nope: 1}`,
			".spec.nope: unknown field"},
		"unspelled":  {`spec: {environment: e, tier: batch, image: i}`, `"replicas" has a default`},
		"wrong type": {`spec: {environment: e, tier: batch, image: 5, replicas: 1}`, "is an integer"},
		"not in enum": {`spec: {environment: e, tier: gold, image: i, replicas: 1}`,
			"gold is not one of"},
		"null": {`spec: {environment: e, tier: batch, image: i, replicas: null}`, "not nullable"},
		"nullable": {
			`spec: {environment: e, tier: batch, image: i, replicas: 1, deployAfter: null}`, ""},
		"date": {
			`spec: {environment: e, tier: batch, image: i, replicas: 1, deployAfter: "2026-02-30T00:00:00Z"}`,
			"out of range"},
		"below minimum": {`spec: {environment: e, tier: batch, image: i, replicas: -1}`, "out of range"},
		"too big": {`spec: {environment: e, tier: batch, image: i, replicas: 2147483648}`,
			"does not fit an int32"},
		"fraction": {`spec: {environment: e, tier: batch, image: i, replicas: 1.5}`, "is a fraction"},
		"pattern": {`spec: {environment: e, tier: batch, image: i, replicas: 1, gracePeriod: soon}`,
			"does not match"},
		"quantity": {`spec: {environment: e, tier: batch, image: i, replicas: 1, resources: {cpu: lots}}`,
			"does not match"},
		"in a list": {`spec: {environment: e, tier: batch, image: i, replicas: 1, ports: [{name: a}]}`,
			`.spec.ports[0]: required field "port"`},
		"in a map": {`spec: {environment: e, tier: batch, image: i, replicas: 1, costShares: {a: x}}`,
			".spec.costShares.a: is a string"},
		"empty text": {`spec: {environment: "", tier: batch, image: i, replicas: 1}`, "has 0 bytes"},
		"not pruned": {
			`spec: {environment: e, tier: batch, image: i, replicas: 1, template: {any: [thing]}}`, ""},
	}
	gvk := schema.GroupVersionKind{Group: "demo.crdcache.dev", Version: "v1", Kind: "Workload"}
	workload := served(loadCRDs(t))[gvk].version.Schema.OpenAPIV3Schema
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := decode([]byte(head + tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(workload.problemsOfObject(objects[0].Object), "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("problems are %q, want them to contain %q", got, tt.want)
			}
		})
	}
}

// TestMetadataProblemsAreFound is TestProblemsAreFound for labels and annotations.
func TestMetadataProblemsAreFound(t *testing.T) {
	tests := map[string]struct {
		metadata string
		problems int
	}{
		"sound":          {`{name: x, labels: {a.b/c: d}, annotations: {a.b/c.d: "any text / at all"}}`, 0},
		"label key":      {`{name: x, labels: {a/b/c: d}}`, 1},
		"label value":    {`{name: x, labels: {a: "b c"}}`, 1},
		"annotation key": {`{name: x, annotations: {a/b/c: d}}`, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := decode([]byte("apiVersion: v1\nkind: Namespace\nmetadata: " + tt.metadata))
			if err != nil {
				t.Fatal(err)
			}
			if got := metadataProblems(objects[0]); len(got) != tt.problems {
				t.Errorf("problems are %q, want %d", got, tt.problems)
			}
		})
	}
}

// TestDecodeIsStrict verifies that a malformed file is an error.
func TestDecodeIsStrict(t *testing.T) {
	tests := map[string]string{
		"duplicate key": "apiVersion: v1\nkind: Namespace\nkind: Namespace\nmetadata: {name: x}\n",
		"no name":       "apiVersion: v1\nkind: Namespace\n",
		"no kind":       "apiVersion: v1\nmetadata: {name: x}\n",
		"no version":    "kind: Namespace\nmetadata: {name: x}\n",
		"not an object": "- 1\n",
		"not YAML":      "a: [\n",
		"second one":    "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\nnope\n",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if objects, err := decode([]byte(text)); err == nil {
				t.Errorf("decoded into %v, want an error", objects)
			}
		})
	}
}
