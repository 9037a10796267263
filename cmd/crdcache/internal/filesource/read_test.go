package filesource

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/manifest"
)

// readNames reads files. It returns the names of the objects, the warnings, and the error. Each object named
// "wrong" is reported as a problem.
func readNames(t *testing.T, options manifest.ReadOptions) (names, warnings []string, err error) {
	t.Helper()
	options.Warn = func(p *manifest.Problem) { warnings = append(warnings, p.Error()) }
	err = manifest.ReadFiles(t.Context(), options,
		func(u *unstructured.Unstructured, report func(error)) {
			names = append(names, u.GetName())
			if u.GetName() == "wrong" {
				report(errors.New("it is wrong"))
			}
		})
	return names, warnings, err
}

// TestRead verifies that objects are read unchanged, without types, and that problems are reported with their
// positions.
func TestRead(t *testing.T) {
	dir := writeTree(t, map[string]string{
		"a.yaml": widget("a", "red") + "---\n" + strings.ReplaceAll(widget("wrong", "red"), "Widget",
			"Other"), "below/b.yaml": widget("b", "red"),
		"values.yaml": "replicas: 1\n", "zero.yaml": "",
	})
	for name, tt := range map[string]struct {
		options               manifest.ReadOptions
		names, warnings, errs []string
	}{
		"all": {manifest.ReadOptions{Paths: []string{dir}}, []string{"a", "wrong", "b"},
			[]string{"values.yaml:1: document 1: ignored"},
			[]string{"a.yaml:6: document 2: it is wrong"}},
		"empty": {manifest.ReadOptions{Paths: []string{dir + "/zero.yaml", dir + "/below"}}, []string{"b"},
			[]string{"zero.yaml: the file is empty"}, nil},
		"missing": {manifest.ReadOptions{Paths: []string{dir + "/none", dir + "/below/b.yaml"}},
			[]string{"b"}, nil, []string{"none: no such file"}},
		"nothing": {manifest.ReadOptions{Paths: []string{manifest.Stdin}, In: strings.NewReader("")}, nil,
			[]string{"stdin: the file is empty"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			names, warnings, err := readNames(t, tt.options)
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			var errs []string
			if err != nil {
				errs = strings.Split(err.Error(), "\n")
			}
			contains := func(want, got string) bool { return strings.Contains(got, want) }
			if !slices.EqualFunc(tt.warnings, warnings, contains) ||
				!slices.EqualFunc(tt.errs, errs, contains) {
				t.Errorf("warnings %q and errors %q, want %q and %q", warnings, errs, tt.warnings, tt.errs)
			}
		})
	}
}

// TestNoFiles verifies that a named directory without manifests, and an empty path, are reported.
func TestNoFiles(t *testing.T) {
	dir := writeTree(t, map[string]string{"notes/a.txt": "a", "deep/er/c.yaml": widget("c", "red")})
	linked := writeTree(t, map[string]string{"a.yaml": widget("a", "red")})
	if err := os.Symlink(dir+"/deep", linked+"/b.yaml"); err != nil {
		t.Fatal(err)
	}
	const none = ": the directory has no YAML or JSON files (.yaml, .yml, .json, .jsonl; also with .gz or .zst)"
	for name, tt := range map[string]struct {
		options manifest.ReadOptions
		warning string
	}{
		"other files": {manifest.ReadOptions{Paths: []string{dir + "/notes/"}}, dir + "/notes" + none},
		"deeper":      {manifest.ReadOptions{Paths: []string{dir + "/deep"}}, ""},
		"all files": {manifest.ReadOptions{Paths: []string{dir, dir + "/deep"}}, dir +
			": not read: 1 files with other names than .yaml, .yml, .json, .jsonl, or pipes, or links to directories"},
		"links": {manifest.ReadOptions{Paths: []string{linked}}, linked +
			": not read: 1 files with other names than .yaml, .yml, .json, .jsonl, or pipes, or links to directories"},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := readNames(t, tt.options)
			if got := strings.Join(warnings, "\n"); err != nil || got != tt.warning {
				t.Errorf("warnings %q, error %v; want %q", got, err, tt.warning)
			}
		})
	}
	s := openSource(t, Options{Paths: []string{dir + "/notes"}})
	if got := problemsOf(s, dir); !slices.Equal(got, []string{"warning: notes" + none}) {
		t.Errorf("Problems() = %q, want a warning about the directory", got)
	}
	if err := s.Refresh(t.Context()); err != nil || len(s.Problems()) != 1 {
		t.Errorf("Refresh() = %v, Problems() = %q, want the same problem", err, problemsOf(s, dir))
	}
	t.Chdir(dir)
	if names, _, err := readNames(t, manifest.ReadOptions{Paths: []string{"", "deep"}}); err == nil ||
		!strings.Contains(err.Error(), "a path is empty") || !slices.Equal(names, []string{"c"}) {
		t.Errorf("ReadFiles() with an empty path = %v with the objects %q, want an error", err, names)
	}
	if _, err := Open(t.Context(), Options{Paths: []string{""}}); err == nil ||
		!strings.Contains(err.Error(), "a path is empty") {
		t.Errorf("Open() with an empty path = %v, want an error", err)
	}
}
