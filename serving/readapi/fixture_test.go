package readapi_test

import (
	"net/http"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m, "crdcache/serving/readapi.")) }

var widgetResource = schema.GroupResource{Group: "example.com", Resource: "widgets"}

const (
	widgetsPath   = "/apis/example.com/v1/widgets"
	inDefaultPath = "/apis/example.com/v1/namespaces/default/widgets"
)

func apply(t testing.TB, s *apiserver.Storage, text string) apiserver.Outcome {
	t.Helper()
	outcome, err := s.Apply(testkit.Parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// newWidgets returns a storage with four red and green widgets in two namespaces.
func newWidgets(t testing.TB, options apiserver.StorageOptions) *apiserver.Storage {
	t.Helper()
	s := apiserver.NewStorage(options)
	apply(t, s, testkit.WidgetCRD)
	apply(t, s, testkit.Widget("default", "a", "red"))
	apply(t, s, testkit.Widget("default", "b", "green"))
	apply(t, s, testkit.Widget("other", "a", "green"))
	apply(t, s, testkit.Widget("other-one", "c", "red"))
	return s
}

func handlerOf(s *apiserver.Storage) http.Handler {
	return readapi.NewHandler(s, readapi.HandlerOptions{})
}

// yamlMap decodes a YAML document.
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

func get(h http.Handler, path string, headers ...string) testkit.Answer {
	return testkit.Ask(h, http.MethodGet, path, headers...)
}
