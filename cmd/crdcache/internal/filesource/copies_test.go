package filesource

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCopies verifies which copy of an object is used, and that differing copies are counted in one line.
// Tools such as must-gather and Velero write each object twice.
func TestCopies(t *testing.T) {
	state := func(uid string, version int, color string) string {
		return fmt.Sprintf("apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: web, uid: %q, resourceVersion: \"%d\"}\n"+
			"spec: {color: %s}\n", uid, version, color)
	}
	const asJSON = `{"spec":{"color":"red"},"kind":"Widget","metadata":{"namespace":"web","name":"a"},"apiVersion":"example.com/v1"}`
	inDefault := strings.Replace(widget("a", "red"), "namespace: web", "namespace: default", 1)
	for name, tt := range map[string]struct {
		first, second string
		color         string
		warns         bool
	}{
		"identical":                        {widget("a", "red"), asJSON, "web/a red", false},
		"identical, of a cluster":          {state("u", 7, "red"), state("u", 7, "red"), "web/a red", false},
		"the default namespace":            {inDefault, strings.Replace(inDefault, ", namespace: default", "", 1), "default/a red", false},
		"no UID":                           {widget("a", "red"), widget("a", "blue"), "web/a blue", true},
		"newer first":                      {state("u", 10, "red"), state("u", 9, "blue"), "web/a red", true},
		"newer last":                       {state("u", 9, "red"), state("u", 10, "blue"), "web/a blue", true},
		"recreated":                        {state("u", 10, "red"), state("v", 9, "blue"), "web/a blue", true},
		"one version with different texts": {state("u", 9, "red"), state("u", 9, "blue"), "web/a blue", true},
	} {
		for layout, files := range map[string]map[string]string{
			"two files":  {"a.yaml": tt.first, "b.yaml": tt.second},
			"one file":   {"a.yaml": tt.first + "---\n" + tt.second},
			"definition": {"a.yaml": tt.first, "b.yaml": tt.second, "crd.yaml": widgetCRD, "crd2.yaml": widgetCRD},
		} {
			dir := writeTree(t, files)
			s := openSource(t, Options{Paths: []string{dir}})
			if got := colors(t, s); !cmp.Equal(got, []string{tt.color}) {
				t.Errorf("%s, %s: %q, want %q", name, layout, got, tt.color)
			}
			if problems := problemsOf(s, dir); len(problems) > 0 != tt.warns || len(problems) > 1 {
				t.Errorf("%s, %s: problems %q, want one: %t", name, layout, problems, tt.warns)
			}
			checkIdentities(t, s, dir)
		}
	}

	files := map[string]string{}
	var core strings.Builder
	for i := range 300 {
		name := fmt.Sprintf("w%d", i)
		path := fmt.Sprintf("namespaces/web/widgets/%s/%s.yaml", name, name)
		old := strings.Replace(state("u", 1, "red"), "name: a", "name: "+name, 1)
		files[path] = strings.NewReplacer("\"1\"", "\"2\"", "red", "blue").Replace(old)
		core.WriteString("---\n" + old)
	}
	files["namespaces/web/core/widgets.yaml"] = core.String()
	files["namespaces/web/pods/log.txt"] = "starting"
	dir := writeTree(t, files)
	archive := filepath.Join(t.TempDir(), "gather.tar.gz")
	writeFile(t, archive, archiveOf(t, files))
	const warning = "warning: namespaces/web/widgets/w0/w0.yaml:1: document 1: Widget web/w0 is also at " +
		"namespaces/web/core/widgets.yaml:2; this one is used; 300 copies of objects are not used, because others are newer, or are read later"
	want := []string{"warning: : not read: 1 files with other names than .yaml, .yml, .json, .jsonl, .tar, .tgz, .zip", warning}
	for _, path := range []string{dir, archive} {
		s := openSource(t, Options{Paths: []string{path}})
		got := problemsOf(s, path)
		for i := range got {
			got[i] = strings.NewReplacer("DIR", "", ", or pipes, or links to directories", "").Replace(got[i])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("problems of %s (-want +got):\n%s", path, diff)
		}
		if got := colors(t, s); len(got) != 300 || !strings.HasSuffix(got[0], "blue") {
			t.Errorf("%s: %d widgets, first %s; want the 300 blue ones", path, len(got), got[0])
		}
		checkIdentities(t, s, path)
	}
}

// archiveOf returns a tar.gz archive.
func archiveOf(t testing.TB, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	w := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(files[name]))}
		must(t, w.WriteHeader(header))
		_, _ = w.Write([]byte(files[name])) // Close reports the error
	}
	must(t, errors.Join(w.Close(), compressed.Close()))
	return b.String()
}
