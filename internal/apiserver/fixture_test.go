package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/readapi"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m, "crdcache/internal/apiserver.")) }

// widgetCRD has two versions, columns of every type, and a selectable field.
const widgetCRD = `
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

var (
	widgetResource = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	hourAgo        = time.Now().Add(-61 * time.Minute)
)

const (
	widgetsPath   = "/apis/example.com/v1/widgets"
	inDefaultPath = "/apis/example.com/v1/namespaces/default/widgets"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
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

func apply(t testing.TB, s *Storage, text string) Outcome {
	t.Helper()
	outcome, err := s.Apply(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

func widget(namespace, name, color string) string {
	return fmt.
		Sprintf(
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: %s, namespace: %s, labels: {color: %s}}, spec: {color: %s}}",
			name, namespace, color, color)
}

// newWidgets returns a storage with four widgets, red and green ones in two namespaces.
func newWidgets(t testing.TB, options StorageOptions) *Storage {
	t.Helper()
	s := NewStorage(options)
	apply(t, s, widgetCRD)
	apply(t, s, widget("default", "a", "red"))
	apply(t, s, widget("default", "b", "green"))
	apply(t, s, widget("other", "a", "green"))
	apply(t, s, widget("other-one", "c", "red"))
	return s
}

type answer struct {
	code   int
	header http.Header
	body   string
}

// ask sends a request to a handler. headers are in turn names and values.
func ask(t testing.TB, h http.Handler, method, path string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{w.Code, w.Header(), strings.TrimSuffix(string(body), "\n")}
}

func get(t testing.TB, h http.Handler, path string, headers ...string) answer {
	t.Helper()
	return ask(t, h, http.MethodGet, path, headers...)
}

func handlerOf(s *Storage) http.Handler { return readapi.NewHandler(s, readapi.HandlerOptions{}) }

// decoded is an answer in JSON.
func (a answer) decoded(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(a.body), &u.Object); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	return u
}

// keys returns the keys of the items of a list.
func (a answer) keys(t testing.TB) []string {
	t.Helper()
	keys := []string{}
	items, _, _ := unstructured.NestedSlice(a.decoded(t).Object, "items")
	for _, item := range items {
		u := unstructured.Unstructured{Object: item.(map[string]any)}
		keys = append(keys, objectKey(u.GetNamespace(), u.GetName()))
	}
	return keys
}

// yamlMap decodes a document as it is.
func yamlMap(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	var content map[string]any
	if err == nil {
		err = utiljson.Unmarshal(data, &content)
	}
	if err != nil {
		t.Error(err)
	}
	return content
}

const (
	asTable       = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asPartialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)
