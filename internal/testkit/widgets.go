package testkit

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// WidgetCRD defines a type with two versions, columns of every type, and a selectable field.
const WidgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Weight, type: number, jsonPath: .spec.weight, priority: 1}
    - {name: Ready, type: boolean, jsonPath: .status.ready}
    - {name: Born, type: date, jsonPath: .spec.born}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {color: {type: string, description: Its color.}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string}}}}}}
`

// Widget returns the manifest of a widget of version v1.
func Widget(namespace, name, color string) string {
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s, namespace: %s, "+
		"labels: {color: %s}}, spec: {color: %s}}", name, namespace, color, color)
}

// Parse decodes the manifest of an object.
func Parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Answer is a response of a handler. Body has no final line end.
type Answer struct {
	Code   int
	Header http.Header
	Body   string
}

// Ask sends a request to a handler. headers are in turn names and values.
func Ask(h http.Handler, method, path string, headers ...string) Answer {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return Answer{w.Code, w.Header(), strings.TrimSuffix(w.Body.String(), "\n")}
}

// Decoded decodes a body in JSON.
func (a Answer) Decoded(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(a.Body), &u.Object); err != nil {
		t.Fatalf("%v in %s", err, a.Body)
	}
	return u
}

// Keys returns the keys of the items of a list.
func (a Answer) Keys(t testing.TB) []string {
	t.Helper()
	keys := []string{}
	items, _, _ := unstructured.NestedSlice(a.Decoded(t).Object, "items")
	for _, item := range items {
		u := unstructured.Unstructured{Object: item.(map[string]any)}
		keys = append(keys, strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/"))
	}
	return keys
}
