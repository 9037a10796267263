package filesource

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestDeletedFile verifies that a file that is deleted while its directory is read is ignored. A named
// file is reported.
func TestDeletedFile(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.yaml": widgetCRD, "b.yaml": widget("b", "red"),
		"c.yaml": widget("c", "red"), "d.yaml": widget("d", "red")})
	removes := func(name string) func(*manifest.Problem) {
		return func(*manifest.Problem) { _ = os.Remove(filepath.Join(dir, name)) }
	}
	writeFile(t, filepath.Join(dir, "a.yaml"), widgetCRD+"---\ntype: ERROR\nobject: {kind: Status}\n")
	s := openSource(t, Options{Paths: []string{dir}, Report: removes("b.yaml")})
	if got := colors(t, s); s.Err() != nil || !slices.Equal(got, []string{"web/c red", "web/d red"}) {
		t.Errorf("Err() = %v with the objects %q, want c and d", s.Err(), got)
	}
	if got := problemsOf(s, dir); len(got) != 2 ||
		got[1] != "warning: b.yaml: the file was removed before it could be read" {
		t.Errorf("Problems() = %q, want a warning about the removed file", got)
	}
	if _, err := Open(t.Context(), Options{Paths: []string{filepath.Join(dir, "a.yaml"),
		filepath.Join(dir, "d.yaml")}, Report: removes("d.yaml")}); err == nil {
		t.Error("Open() with a deleted named file succeeded, want an error")
	}
}

// TestProblemsOfLatestRead verifies that Problems returns only the problems of the latest read.
func TestProblemsOfLatestRead(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.yaml": widgetCRD})
	s := openSource(t, Options{Paths: []string{dir}})
	for i := range 50 {
		writeFile(t, filepath.Join(dir, "b.yaml"), widget("b", "red")+fmt.Sprintf("---\na%s: [\n",
			strings.Repeat("a", i)))
		must(t, s.Refresh(t.Context()))
		if got := problemsOf(s, dir); len(got) != 1 {
			t.Fatalf("after %d changes, Problems() = %q, want 1", i+1, got)
		}
	}
	writeFile(t, filepath.Join(dir, "b.yaml"), widget("b", "blue"))
	if err := s.Refresh(t.Context()); err != nil || s.Err() != nil {
		t.Errorf("after the correction: Refresh() = %v, Err() = %v, want no errors", err, s.Err())
	}
}
