package filesource

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/internal/manifest"
)

// saveGizmos saves two gizmos and two missing types, one of them because of an error.
func saveGizmos(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "some.snapshot")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := snapshot.NewWriter(file, snapshot.Origin{})
	section := w.BeginType(snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos", Kind: "Gizmo"})
	var failed []error
	for _, name := range []string{"a", "b"} {
		text := `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":"` + name +
			`"},"spec":{"size":1}}`
		failed = append(failed, section.Add([]byte(text), nil))
	}
	failed = append(failed, section.Close("1"),
		w.AddMissing(snapshot.Type{Version: "v1", Resource: "secrets", Kind: "Secret"},
			metav1.Status{Message: "you may not"}, false),
		w.AddMissing(snapshot.Type{Version: "v1", Resource: "pods", Kind: "Pod"},
			metav1.Status{Message: "not requested"}, true),
		w.Commit(), file.Close())
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadSnapshot verifies that complete objects of the selected types are read, and that types that could
// not be saved are reported.
func TestReadSnapshot(t *testing.T) {
	path := saveGizmos(t)
	read := func(wanted func(snapshot.Type) bool,
		take func(*unstructured.Unstructured) error) (names []string, err error) {
		err = ReadFiles(t.Context(), manifest.ReadOptions{Paths: []string{path}}, wanted,
			func(u *unstructured.Unstructured, _ func(error)) error {
				names = append(names, u.GetAPIVersion()+" "+u.GetKind()+" "+u.GetName())
				return take(u)
			})
		return names, err
	}
	intact := func(*unstructured.Unstructured) error { return nil }
	content := []string{"example.com/v1 Gizmo a", "example.com/v1 Gizmo b"}
	names, err := read(nil, func(u *unstructured.Unstructured) error {
		if size, found, err := unstructured.NestedInt64(u.Object, "spec", "size"); size != 1 ||
			!found || err != nil {
			t.Errorf("spec.size = %v (found: %v), %v, want 1", size, found, err)
		}
		return nil
	})
	if !slices.Equal(names, content) || err == nil ||
		!strings.HasSuffix(err.Error(), "some.snapshot: secrets was not saved: you may not") {
		t.Errorf("reading all types = %q, %v, want an error about secrets", names, err)
	}
	if names, err = read(func(t snapshot.Type) bool { return t.Resource == "gizmos" },
		intact); !slices.Equal(names, content) || err != nil {
		t.Errorf("reading gizmos = %q, %v, want %q", names, err, content)
	}
	enough := errors.New("enough")
	if names, err = read(nil, func(*unstructured.Unstructured) error { return enough }); len(names) != 1 ||
		!errors.Is(err, enough) {
		t.Errorf("reading with a failing callback = %q, %v, want the callback's error after one object", names, err)
	}
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if names, err = read(nil, intact); len(names) > 0 || err == nil ||
		!strings.Contains(err.Error(), "some.snapshot: ") {
		t.Errorf("reading a truncated file = %q, %v, want an error with the file", names, err)
	}
}
