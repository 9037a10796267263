package filesource

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/testkit"
)

func TestMain(m *testing.M) {
	os.Exit(testkit.Main(m, "crdcache/cmd/crdcache/internal/filesource.", "crdcache/serving/readapi."))
}

const widgetCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

var widgets = schema.GroupResource{Group: "example.com", Resource: "widgets"}

const widgetsPath = "/apis/example.com/v1/widgets"

func widget(name, color string) string {
	return fmt.Sprintf("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: %s, namespace: web}\nspec: {color: %s}\n", name, color)
}

// writeTree writes files to a temporary directory and returns it.
func writeTree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// Replace the file atomically, as editors do.
	if err := os.WriteFile(path+"~", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func openSource(t testing.TB, options Options) *Source {
	t.Helper()
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// problemsOf returns the texts of all problems, with paths relative to dir and a prefix for warnings.
func problemsOf(s *Source, dir string) []string { return describe(s.Problems(), dir) }

func describe(problems []*manifest.Problem, dir string) []string {
	out := []string{}
	for _, p := range problems {
		text := strings.ReplaceAll(strings.ReplaceAll(p.Error(), dir+"/", ""), dir, "DIR")
		if p.Warning {
			text = "warning: " + text
		}
		out = append(out, text)
	}
	return out
}

// readObject requests a path through the clients' transport.
func readObject(t testing.TB, s *Source, path string) *unstructured.Unstructured {
	t.Helper()
	client, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.Config().Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		return nil // plain text: not found
	}
	return u
}

// colors lists the widgets of a source as "namespace/name color", or nil if the type is not served.
func colors(t testing.TB, s *Source) []string {
	t.Helper()
	list := readObject(t, s, widgetsPath)
	if list == nil {
		return nil
	}
	out := []string{}
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	for _, item := range items {
		u := unstructured.Unstructured{Object: item.(map[string]any)}
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		out = append(out, u.GetNamespace()+"/"+u.GetName()+" "+color)
	}
	return out
}
