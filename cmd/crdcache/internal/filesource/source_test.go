package filesource

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/manifest"
)

func TestOpen(t *testing.T) {
	const noObjects = "warning: DIR: the files define widgets.example.com, and have neither an object nor a list of them"
	tests := map[string]struct {
		files    map[string]string
		colors   []string
		problems []string
	}{
		"CRD first": {map[string]string{"a.yaml": widgetCRD + "---\n" + widget("a", "red")},
			[]string{"web/a red"}, nil},
		"CRD last": {map[string]string{"a.yaml": widget("a", "red"), "b/c/d.yml": widgetCRD},
			[]string{"web/a red"}, nil},
		"no CRD": {map[string]string{"a.yaml": widget("a", "red") + "---\n" + widget("b", "red")},
			[]string{"web/a red", "web/b red"}, []string{
				"warning: a.yaml:1: document 1: no CustomResourceDefinition defines Widget.example.com: assuming it is namespaced and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them"}},
		"no CRD, no namespace": {map[string]string{"a.yaml": strings.Replace(widget("a", "red"),
			", namespace: web", "", 1)}, []string{"/a red"}, []string{
			"warning: a.yaml:1: document 1: no CustomResourceDefinition defines Widget.example.com: assuming it is cluster-scoped and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them"}},
		"no CRD, some namespace": {map[string]string{"a.yaml": strings.Replace(widget("a", "red"),
			", namespace: web", "", 1), "b.yaml": widget(
			"b", "red")}, []string{"default/a red", "web/b red"}, []string{
			"warning: a.yaml:1: document 1: no CustomResourceDefinition defines Widget.example.com: assuming it is namespaced and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them"}},
		"default namespace": {map[string]string{"a.yaml": widgetCRD + "---\n" +
			strings.Replace(widget("a", "red"), ", namespace: web", "", 1)}, []string{"default/a red"}, nil},
		"other files": {map[string]string{"a.yaml": widgetCRD, "notes.txt": "x", ".hidden.yaml": "x: [",
			".git/x.yaml": "x: ["}, []string{}, []string{
			"warning: DIR: not read: 1 files with other names than .yaml, .yml, .json, .jsonl, .tar, .tgz, .zip, or pipes, or links to directories", noObjects}},
		"foreign documents": {map[string]string{"a.yaml": widgetCRD, "values.yaml": "a: b\n",
			"list.json": "[1]", "k.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"}, []string{}, []string{
			"warning: k.yaml:1: document 1: ignored: Kustomization.kustomize.config.k8s.io has no metadata.name; so are 2 other documents", noObjects,
		}},
		"twice": {map[string]string{"a.yaml": widgetCRD + "---\n" + widget("a", "red") + "---\n" +
			widget("a", "green"), "b.yaml": widget("a", "blue")}, []string{"web/a blue"}, []string{
			"warning: a.yaml:16: document 3: Widget web/a is also at a.yaml:11; this one is used; 2 copies of objects are not used, because others are newer, or are read later",
		}},
		"broken": {map[string]string{"a.yaml": widgetCRD + "---\n" + widget("a", "red") + "---\na: [\n"},
			[]string{"web/a red"}, []string{
				"a.yaml:16: document 3: not valid YAML: did not find expected node content: " + string(manifest.ErrTruncated)}},
		"unserved version": {map[string]string{"a.yaml": widgetCRD + "---\n" +
			strings.Replace(widget("a", "red"), "com/v1", "com/v9", 1)}, []string{}, []string{
			`a.yaml:11: document 2: Widget web/a: Widget.example.com is not served in version "v9" but in ["v1"]`}},
		"broken CRD": {map[string]string{"a.yaml": strings.Replace(widgetCRD, "Namespaced", "Galaxy", 1)},
			nil, []string{
				`a.yaml:1: document 1: CustomResourceDefinition "widgets.example.com": spec.scope is "Galaxy", want Namespaced or Cluster`}},
		"old CRD": {map[string]string{"a.yaml": strings.Replace(widgetCRD, "k8s.io/v1", "k8s.io/v1beta1", 1)},
			nil, []string{
				"a.yaml:1: document 1: CustomResourceDefinition widgets.example.com: only apiextensions.k8s.io/v1 is supported"}},
		"webhook": {map[string]string{"a.yaml": strings.NewReplacer("spec:\n",
			"spec:\n  conversion: {strategy: Webhook}\n",
			"  versions:\n", "  versions:\n  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n").Replace(widgetCRD)}, []string{}, []string{noObjects}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := writeTree(t, tt.files)
			s := openSource(t, Options{Paths: []string{dir}})
			if name == "no CRD" && len(s.Problems()) > 0 {
				t.Errorf("Problems() before the first use of the type = %v, want none", s.Problems())
			}
			s.RecordUse(true, widgets)
			if diff := cmp.Diff(tt.colors, colors(t, s)); diff != "" {
				t.Errorf("widgets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, tt.problems...), problemsOf(s, dir)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			failed := slices.ContainsFunc(tt.problems,
				func(p string) bool { return !strings.HasPrefix(p, "warning: ") })
			if (s.Err() != nil) != failed {
				t.Errorf("Err() = %v, want an error only for problems that are not warnings", s.Err())
			}
			checkIdentities(t, s, dir)
		})
	}
}

func TestPaths(t *testing.T) {
	dir := writeTree(t, map[string]string{"crd.yaml": widgetCRD,
		"sub/a.json": `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"web"},"spec":{"color":"red"}}`})
	stdin := strings.NewReader(widget("b", "green"))
	reported := 0
	s := openSource(t, Options{Paths: []string{manifest.Stdin, dir + "/", filepath.Join(dir, "sub"),
		manifest.Stdin}, In: stdin, Report: func(*manifest.Problem) { reported++ }})
	if diff := cmp.Diff([]string{"web/a red", "web/b green"}, colors(t, s)); diff != "" {
		t.Errorf("colors of the objects (-want +got):\n%s", diff)
	}
	var paths []string
	for _, f := range s.reading.files {
		paths = append(paths, f.Path)
	}
	if diff := cmp.Diff([]string{"-", dir + "/crd.yaml", dir + "/sub/a.json"}, paths); diff != "" ||
		reported != 0 {
		t.Errorf("%d problems (-want +got):\n%s", reported, diff)
	}
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("Open() without paths succeeded, want an error")
	}
	if _, err := Open(t.Context(), Options{Paths: []string{dir + "/none"}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open() of a missing path = %v, want fs.ErrNotExist", err)
	}
	if _, err := Open(t.Context(), Options{Paths: []string{manifest.Stdin}}); err == nil {
		t.Error("Open() of standard input without a reader succeeded, want an error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{Paths: []string{dir}}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open() with an ended context = %v, want context.Canceled", err)
	}
}
