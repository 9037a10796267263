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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	// Replace the file atomically, as editors do.
	must(t, os.WriteFile(path+"~", []byte(text), 0o600))
	must(t, os.Rename(path+"~", path))
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openSource(t testing.TB, options Options) *Source {
	t.Helper()
	s, err := Open(t.Context(), options)
	must(t, err)
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
	must(t, err)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, s.Config().Host+path, nil)
	must(t, err)
	response, err := client.Do(r)
	must(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	must(t, err)
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

// checkIdentities verifies that a source that keeps only identities has the objects and problems of another
// source of the same path.
func checkIdentities(t testing.TB, whole *Source, path string) {
	t.Helper()
	s := openSource(t, Options{Paths: []string{path}, KeepIdentity: true})
	s.RecordUse(true, widgets)
	whole.RecordUse(true, widgets)
	withoutColor := cmpopts.AcyclicTransformer("name",
		func(text string) string { return text[:strings.Index(text, " ")+1] })
	if diff := cmp.Diff(colors(t, whole), colors(t, s), withoutColor); diff != "" {
		t.Errorf("%s: identities (-whole objects +only identities):\n%s", path, diff)
	}
	if diff := cmp.Diff(problemsOf(whole, path), problemsOf(s, path)); diff != "" {
		t.Errorf("%s: problems (-whole objects +only identities):\n%s", path, diff)
	}
}

// written lists the widgets at a version as "apiVersion name color".
func written(t testing.TB, s *Source, version string) []string {
	t.Helper()
	list := readObject(t, s, "/apis/example.com/"+version+"/widgets")
	if list == nil {
		return nil
	}
	out := []string{}
	items, _, _ := unstructured.NestedSlice(list.Object, "items")
	for _, item := range items {
		u := unstructured.Unstructured{Object: item.(map[string]any)}
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		out = append(out, fmt.Sprintf("%s %s %s", u.GroupVersionKind().Version, u.GetName(), color))
		if one := readObject(t, s, "/apis/example.com/"+version+"/namespaces/web/widgets/"+u.GetName()); one == nil ||
			one.GetAPIVersion() != u.GetAPIVersion() {
			t.Errorf("Get %s returned %v, want %s", u.GetName(), one, u.GetAPIVersion())
		}
	}
	return out
}

// widgetVersions is the definition of widgets with two versions.
func widgetVersions(strategy string) string {
	const version = "  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, " +
		"x-kubernetes-preserve-unknown-fields: true}}}\n"
	start, _, _ := strings.Cut(widgetCRD, "  - {name")
	return strings.Replace(start, "spec:\n", "spec:\n  conversion: {strategy: "+strategy+"}\n", 1) + version +
		strings.NewReplacer("v1", "v1beta1", "storage: true", "storage: false").Replace(version)
}

// TestVersions verifies that files with a type in several versions are read as they are written: all objects
// in their own version, or those in a named one.
func TestVersions(t *testing.T) {
	beta := func(name, color string) string {
		return strings.Replace(widget(name, color), "com/v1", "com/v1beta1", 1)
	}
	mixed := widget("a", "red") + "---\n" + beta("b", "blue") + "---\n" + beta("c", "green")
	withMeta := func(text, version string) string {
		return strings.Replace(text, "namespace: web", `namespace: web, uid: u, resourceVersion: "`+version+`"`, 1)
	}
	const unnamed = "warning: DIR: the objects of widgets.example.com are written in several versions (1 in v1, 2 in v1beta1): " +
		"each is read in its own, because no server converts files"
	for name, tt := range map[string]struct {
		text, typeName, version string
		want, warnings          []string
	}{
		"no CRD": {mixed, "wd", "v1", []string{"v1 a red", "v1beta1 b blue", "v1beta1 c green"}, []string{unnamed}},
		"no CRD, one version": {mixed, "widgets.v1.example.com", "v1", []string{"v1 a red"}, []string{
			"warning: DIR: not all objects of widgets.example.com are read as v1 (2 in v1beta1), because no server converts files: name no version to read all"}},
		"no CRD, other version": {mixed, "Widget.v1beta1.example.com", "v1beta1",
			[]string{"v1beta1 b blue", "v1beta1 c green"}, []string{
				"warning: DIR: not all objects of widgets.example.com are read as v1beta1 (1 in v1), because no server converts files: name no version to read all"}},
		"webhook": {widgetVersions("Webhook") + "---\n" + mixed, "wd", "v1",
			[]string{"v1 a red", "v1beta1 b blue", "v1beta1 c green"}, []string{unnamed}},
		"webhook, version without objects": {widgetVersions("Webhook") + "---\n" + beta("b", "blue"),
			"widgets.v1.example.com", "v1", []string{}, []string{
				"warning: DIR: not all objects of widgets.example.com are read as v1 (1 in v1beta1), because no server converts files: name no version to read all"}},
		"no conversion": {widgetVersions("None") + "---\n" + mixed, "widgets", "v1",
			[]string{"v1 a red", "v1beta1 b blue", "v1beta1 c green"}, []string{unnamed}},
		"no conversion, one version": {widgetVersions("None") + "---\n" + mixed, "widgets.v1beta1.example.com", "v1beta1",
			[]string{"v1beta1 b blue", "v1beta1 c green"}, []string{
				"warning: DIR: not all objects of widgets.example.com are read as v1beta1 (1 in v1), because no server converts files: name no version to read all"}},
		"no conversion, version without objects": {widgetVersions("None") + "---\n" + beta("b", "blue"), "widgets.v1.example.com", "v1",
			[]string{"v1 b blue"}, nil},
		"one object in two versions": {withMeta(beta("a", "blue"), "7") + "---\n" + withMeta(widget("a", "red"), "7") +
			"---\n" + withMeta(beta("a", "blue"), "7"), "widgets", "v1", []string{"v1 a red"}, nil},
		"one object, saved": {widget("a", "red") + "---\n" + beta("a", "red"), "widgets", "v1", []string{"v1beta1 a red"}, []string{
			"warning: a.yaml:6: document 2: Widget web/a is also at a.yaml:1; this one is used",
			"warning: DIR: 1 copies of widgets.example.com in other versions are not saved: name a version to save them in another file"}},
		"one object in two versions, one named": {withMeta(widget("a", "red"), "7") + "---\n" + withMeta(beta("a", "blue"), "7"),
			"widgets.v1beta1.example.com", "v1beta1", []string{"v1beta1 a blue"}, nil},
		"a newer state in another version": {withMeta(beta("a", "blue"), "10") + "---\n" + withMeta(widget("a", "red"), "9"),
			"widgets", "v1", []string{"v1beta1 a blue"}, []string{
				"warning: a.yaml:6: document 2: Widget web/a is also at a.yaml:1; that one is used"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, map[string]string{"a.yaml": tt.text})
			s := openSource(t, Options{Paths: []string{dir}})
			s.SelectVersions(name != "one object, saved", "pods", tt.typeName)
			if tt.typeName == "wd" && !strings.Contains(tt.text, "CustomResourceDefinition") {
				s.SelectVersions(true, "widgets")
			}
			s.RecordUse(true, widgets, widgets)
			if diff := cmp.Diff(tt.want, written(t, s, tt.version)); diff != "" {
				t.Errorf("widgets (-want +got):\n%s", diff)
			}
			var warnings []string
			for _, p := range problemsOf(s, dir) {
				if !strings.Contains(p, "no CustomResourceDefinition") {
					warnings = append(warnings, p)
				}
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestVersionsFollowed verifies that an object in two versions follows changes of each file.
func TestVersionsFollowed(t *testing.T) {
	state := func(apiVersion, color string, version int) string {
		return fmt.Sprintf("apiVersion: example.com/%s\nkind: Widget\nmetadata: {name: a, namespace: web, uid: u, resourceVersion: \"%d\"}\n"+
			"spec: {color: %s}\n", apiVersion, version, color)
	}
	dir := writeTree(t, map[string]string{"a.yaml": state("v1", "red", 5), "b.yaml": state("v1beta1", "blue", 7)})
	s := openSource(t, Options{Paths: []string{dir}})
	expect := func(step string, v1, v1beta1 []string) {
		t.Helper()
		must(t, s.Refresh(t.Context()))
		if got := written(t, s, "v1"); !cmp.Equal(got, v1) {
			t.Errorf("%s: v1 = %q, want %q", step, got, v1)
		}
		if got := written(t, s, "v1beta1"); !cmp.Equal(got, v1beta1) {
			t.Errorf("%s: v1beta1 = %q, want %q", step, got, v1beta1)
		}
	}
	expect("open", []string{"v1beta1 a blue"}, []string{"v1beta1 a blue"})
	writeFile(t, dir+"/a.yaml", state("v1", "darkred", 9))
	expect("v1 is newer", []string{"v1 a darkred"}, []string{"v1beta1 a blue"})
	writeFile(t, dir+"/a.yaml", state("v1", "pink", 6))
	expect("v1 is older again", []string{"v1beta1 a blue"}, []string{"v1beta1 a blue"})
	writeFile(t, dir+"/c.yaml", state("v1beta1", "navy", 12))
	expect("a newer copy", []string{"v1beta1 a navy"}, []string{"v1beta1 a navy"})
	writeFile(t, dir+"/c.yaml", state("v1beta1", "cyan", 1))
	expect("the copy is older", []string{"v1beta1 a blue"}, []string{"v1beta1 a blue"})
	writeFile(t, dir+"/b.yaml", widget("b", "black"))
	expect("a file has another object", []string{"v1 a pink", "v1 b black"}, []string{"v1beta1 a cyan"})
}
