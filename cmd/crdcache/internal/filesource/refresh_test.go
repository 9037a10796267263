package filesource

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestStdinIsKept verifies that Refresh keeps the objects of standard input, which cannot be read again.
func TestStdinIsKept(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.yaml": widgetCRD})
	s := openSource(t, Options{Paths: []string{dir, manifest.Stdin}, In: strings.NewReader(widget("a", "red"))})
	writeFile(t, filepath.Join(dir, "b.yaml"), widget("b", "red"))
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web/a red", "web/b red"}, colors(t, s)); diff != "" {
		t.Errorf("colors of the objects (-want +got):\n%s", diff)
	}
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Err(); err == nil ||
		!strings.Contains(err.Error(), "stdin:1: document 1: Widget web/a is no longer shown") {
		t.Errorf("Err() = %v, want the problem of standard input", err)
	}
}

// TestRefreshModel changes files at random. After each change, a refreshed Source and a new one must have the
// same objects.
func TestRefreshModel(t *testing.T) {
	dir := writeTree(t, map[string]string{"crd.yaml": widgetCRD})
	s := openSource(t, Options{Paths: []string{dir}})
	for step := range 40 {
		path := filepath.Join(dir, fmt.Sprint("f", step*7%5, ".yaml"))
		if step%6 == 5 {
			_ = os.Remove(path) // the file may not exist
		} else {
			var docs []string
			for i := range step % 4 {
				docs = append(docs, widget(fmt.Sprint("w", (step*3+i)%6), fmt.Sprint("c", step)))
			}
			writeFile(t, path, "# objects\n"+strings.Join(docs, "---\n"))
		}
		if step%11 == 10 {
			_ = os.Remove(filepath.Join(dir, "crd.yaml"))
		} else if step%11 == 3 {
			writeFile(t, filepath.Join(dir, "crd.yaml"), widgetCRD)
		}
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := colors(t, openSource(t, Options{Paths: []string{dir}}))
		got := colors(t, s)
		if len(got) == 0 && len(want) == 0 {
			continue // an inferred type remains without objects
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d (-opened again +refreshed):\n%s", step, diff)
		}
	}
}
