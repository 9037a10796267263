package crd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const widgetYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, uid: u-1, generation: 3, resourceVersion: "7"}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  conversion: {strategy: Webhook}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    additionalPrinterColumns:
    - {name: Ready, type: string, jsonPath: .status.ready, priority: 1}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [color]
            properties:
              color: {type: string, enum: [red, green], default: red}
              size: {x-kubernetes-int-or-string: true}
              parts: {type: array, items: {type: object, properties: {name: {type: string}}}}
              labels: {type: object, additionalProperties: {type: string}}
              open: {type: object, additionalProperties: true}
              any: {x-kubernetes-preserve-unknown-fields: true}
  - {name: v2, served: false, storage: false}
status:
  acceptedNames: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  storedVersions: [v1alpha1, v1]
  conditions:
  - {type: NamesAccepted, status: "True"}
  - {type: Established, status: "True"}
  - {type: Terminating, status: "False"}
`

func decodeYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantWidget() *Definition {
	return &Definition{
		Name: "widgets.example.com", UID: "u-1", Generation: 3, ResourceVersion: "7",
		Group: "example.com", Namespaced: true, ConversionWebhook: true,
		Names: Names{Plural: "widgets", Singular: "widget", Kind: "Widget", ShortNames: []string{"wd"}},
		Versions: []Version{
			{Name: "v1alpha1", Served: true, Deprecated: true},
			{Name: "v1", Served: true, Storage: true, Subresources: []string{"scale", "status"}},
			{Name: "v2"},
		},
		StoredVersions: []string{"v1alpha1", "v1"}, Established: true, NamesAccepted: true,
	}
}

func TestFromUnstructured(t *testing.T) {
	got, err := FromUnstructured(decodeYAML(t, widgetYAML))
	if err != nil {
		t.Fatal(err)
	}
	v, ok := got.Version("v1")
	if !ok {
		t.Fatal("the definition has no version v1")
	}
	if diff := cmp.Diff([]Column{{Name: "Ready", Type: "string", JSONPath: ".status.ready", Priority: 1}},
		v.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{".spec.color"}, v.SelectableFields); diff != "" {
		t.Errorf("selectable fields (-want +got):\n%s", diff)
	}
	// Summary and Decode agree, except for the fields that Summary omits.
	for i := range got.Versions {
		got.Versions[i].Schema, got.Versions[i].Columns, got.Versions[i].SelectableFields = nil, nil, nil
	}
	if diff := cmp.Diff(wantWidget(), got); diff != "" {
		t.Errorf("definition (-want +got):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	d, err := FromUnstructured(decodeYAML(t, widgetYAML))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := d.Version("v1")
	// type by path: "open" for any value, "" for a missing field
	tests := map[string]string{
		"":                   "object",
		"spec":               "object",
		"spec color":         "string",
		"spec size":          "int-or-string",
		"spec parts [] name": "string",
		"spec parts name":    "",
		"spec labels x":      "string",
		"spec open x y":      "open",
		"spec any x [] y":    "open",
		"spec nothing":       "",
		"spec color deeper":  "",
	}
	for path, want := range tests {
		got, ok := lookup(v.Schema, strings.Fields(path)...)
		var is string
		switch {
		case !ok:
		case got.PreserveUnknown:
			is = "open"
		case got.IntOrString:
			is = "int-or-string"
		default:
			is = got.Type
		}
		if is != want {
			t.Errorf("the schema of %q is %q, want %q", path, is, want)
		}
	}
	if diff := cmp.Diff([]string{"spec"}, v.Schema.Fields()); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	asJSON, err := json.Marshal(decodeYAML(t, widgetYAML))
	if err != nil {
		t.Fatal(err)
	}
	indented := "  " + strings.ReplaceAll(widgetYAML, "\n", "\n  ")
	second := strings.ReplaceAll(widgetYAML, "widget", "gadget")
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	tests := map[string]struct {
		text string
		want []string
		err  string // part of the error
	}{
		"one":           {text: widgetYAML, want: []string{"widgets"}},
		"two documents": {text: widgetYAML + "---\n" + second, want: []string{"widgets", "gadgets"}},
		"other objects": {text: "# comment\n---\n" + configMap + "---\n" + widgetYAML,
			want: []string{"widgets"}},
		"json":         {text: string(asJSON), want: []string{"widgets"}},
		"json objects": {text: string(asJSON) + "\n" + string(asJSON), want: []string{"widgets", "widgets"}},
		"list":         {text: "apiVersion: v1\nkind: List\nitems:\n-\n" + indented, want: []string{"widgets"}},
		"typed list": {
			text: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinitionList","items":[` +
				strings.Replace(string(asJSON), `"kind":"CustomResourceDefinition",`, "", 1) + `]}`,
			want: []string{"widgets"}},
		"nothing": {text: configMap, err: "f.yaml: no CustomResourceDefinition found"},
		"empty":   {text: "", err: "f.yaml: the file is empty"},
		"bad second": {text: widgetYAML + "---\n\tx: [", want: []string{"widgets"},
			err: "f.yaml:45: document 2: "},
		"not an object": {text: "- 1\n- 2\n", err: "document 1: not a Kubernetes object"},
		"v1beta1": {text: strings.Replace(widgetYAML, "k8s.io/v1", "k8s.io/v1beta1", 1),
			err: "v1beta1 was removed"},
		"no kind": {text: strings.Replace(widgetYAML, "kind: Widget, shortNames: [wd], categories",
			"categories", 1), want: []string{"widgets"}},
		"no group, no scope": {text: strings.NewReplacer("group: example.com", "", "scope: Namespaced",
			"scope: Galaxy").Replace(widgetYAML), err: "spec.group is missing\nspec.scope is \"Galaxy\""},
		"twice": {text: strings.Replace(widgetYAML, "name: v2", "name: v1", 1),
			err: `spec.versions has "v1" twice`},
		"bad list item": {
			text: "kind: List\nitems: [{kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1, spec: 7}]\n", err: "document 1, item 1: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := Read(strings.NewReader(tt.text), "f.yaml")
			var got []string
			for _, d := range found {
				got = append(got, d.Names.Plural)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("plural names of the definitions (-want +got):\n%s", diff)
			}
			if tt.err == "" && err != nil || tt.err != "" &&
				(err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
		})
	}
}

// FuzzDecode compares the three decoders. None may panic, and Summary must agree with Decode.
func FuzzDecode(f *testing.F) {
	data, err := yaml.YAMLToJSON([]byte(widgetYAML))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[null,{}],"names":[]}}`))
	f.Add([]byte(`{"spec":{"versions":{"a":1}},"status":{"conditions":[1]}}`))
	f.Add([]byte(`kind: List` + "\n" + `items: [null, 1, {kind: CustomResourceDefinition}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		full, fullErr := Decode(data)
		if fullErr == nil {
			for _, v := range full.Versions {
				lookup(v.Schema, "spec", "[]", "x")
			}
		}
		_, _ = Read(strings.NewReader(string(data)), "fuzz")
		var object map[string]any
		if json.Unmarshal(data, &object) != nil {
			return
		}
		summary, err := Summary(object)
		if err != nil || fullErr != nil {
			return
		}
		if summary.GroupResource() != full.GroupResource() || summary.Namespaced != full.Namespaced ||
			len(summary.Versions) != len(full.Versions) {
			t.Errorf("Summary = %+v, want the type, scope and versions of %+v", summary, full)
		}
	})
}

// lookup returns the schema of the field at a path. A segment is a field name, a key of a map, or "[]".
func lookup(s *Schema, path ...string) (*Schema, bool) {
	for _, segment := range path {
		if s == nil {
			return nil, false
		}
		next := s.Properties[segment]
		switch {
		case segment == "[]":
			next = s.Items
		case next == nil:
			next = s.AdditionalProperties
		}
		if next == nil && s.PreserveUnknown {
			return &Schema{PreserveUnknown: true}, true
		}
		s = next
	}
	return s, s != nil
}
