package filesource

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestRead verifies that objects are read unchanged, without types, and that problems are reported with their
// positions.
func TestRead(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"a.yaml":       widget("a", "red") + "---\n" + strings.ReplaceAll(widgetCRD, "io/v1", "io/v1beta1"),
		"below/b.yaml": widget("b", "red"), "values.yaml": "replicas: 1\n", "zero.yaml": "",
		"below/c.tgz": archiveOf(t, map[string]string{"c.yaml": widget("c", "red")}),
	})
	for name, tt := range map[string]struct {
		options          Options
		colors, problems []string
	}{
		"all": {Options{Paths: []string{dir}}, []string{"web/a red", "web/b red", "web/c red"},
			[]string{"a.yaml:6: document 2: CustomResourceDefinition", "zero.yaml: the file is empty", "warning: values.yaml:1: document 1: ignored"}},
		"empty": {Options{Paths: []string{dir + "/zero.yaml", dir + "/below"}}, []string{"web/b red", "web/c red"},
			[]string{"zero.yaml: the file is empty"}},
		"nothing": {Options{Paths: []string{manifest.Stdin}, In: strings.NewReader("")}, nil,
			[]string{"stdin: the file is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := openSource(t, tt.options)
			if diff := cmp.Diff(tt.colors, colors(t, s)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if got := problemsOf(s, dir); !slices.EqualFunc(got, tt.problems, strings.HasPrefix) {
				t.Errorf("problems %q, want %q", got, tt.problems)
			}
		})
	}
}

// TestNoFiles verifies that a named directory without manifests, and an empty path, are reported.
func TestNoFiles(t *testing.T) {
	dir := writeTree(t, map[string]string{"notes/a.txt": "a", "deep/er/c.yaml": widget("c", "red")})
	linked := writeTree(t, map[string]string{"a.yaml": widget("a", "red")})
	must(t, os.Symlink(dir+"/deep", linked+"/b.yaml"))
	const none = ": the directory has no YAML or JSON files or archives (.yaml, .yml, .json, .jsonl, .tar, .tgz, .zip; also with .gz or .zst)"
	const unread = ": not read: 1 files with other names than .yaml, .yml, .json, .jsonl, .tar, .tgz, .zip, or pipes, or links to directories"
	for name, tt := range map[string]struct {
		paths    []string
		problems []string
	}{
		"other files": {[]string{dir + "/notes/"}, []string{"warning: notes" + none}},
		"deeper":      {[]string{dir + "/deep"}, []string{}},
		"all files":   {[]string{dir, dir + "/deep"}, []string{"warning: DIR" + unread}},
		"links":       {[]string{linked}, []string{"warning: " + linked + unread}},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemsOf(openSource(t, Options{Paths: tt.paths}), dir)
			if !slices.Equal(got, tt.problems) {
				t.Errorf("problems %q, want %q", got, tt.problems)
			}
		})
	}
	s := openSource(t, Options{Paths: []string{dir + "/notes"}})
	if err := s.Refresh(t.Context()); err != nil || len(s.Problems()) != 1 {
		t.Errorf("Refresh() = %v, Problems() = %q, want the same problem", err, problemsOf(s, dir))
	}
	if _, err := Open(t.Context(), Options{Paths: []string{""}}); err == nil ||
		!strings.Contains(err.Error(), "a path is empty") {
		t.Errorf("Open() with an empty path = %v, want an error", err)
	}
}
