//go:build unix

package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// stateObject is an object of namespace a.
func stateObject(name, text string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":%q,"namespace":"a"},"spec":{"text":%q}}`, name, text)
}

// TestState: what is saved whole and then in parts is loaded in the order of its keys, with the last checkpoint.
func TestState(t *testing.T) {
	folder := t.TempDir()
	s, err := OpenState(folder, "id")
	if err != nil {
		t.Fatal(err)
	}
	if other, err := OpenState(folder, "id"); err == nil {
		t.Errorf("a second process has %v", other)
	}
	view, err := s.View("a view")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := view.Checkpoint(); ok || err != nil {
		t.Errorf("before anything is saved: %v, %v", ok, err)
	}
	save := func(version string, whole bool, put []string, deleted ...string) {
		t.Helper()
		err := view.Save(dynamicinformer.Checkpoint{ResourceVersion: version, Version: "v1"}, whole, func(w dynamicinformer.PersistenceWriter) error {
			for _, name := range put {
				if err := w.Put("a/"+name, stateObject(name, version)); err != nil {
					return err
				}
			}
			for _, name := range deleted {
				if err := w.Delete("a/" + name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(version string, want ...string) {
		t.Helper()
		var got []string
		if err := view.Load(func(json []byte) error { got = append(got, string(json)); return nil }); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %q, %v", got, err)
		}
		if at, ok, err := view.Checkpoint(); !ok || err != nil || at.ResourceVersion != version {
			t.Errorf("%+v, %v, %v", at, ok, err)
		}
	}
	save("1", true, nil)
	expect("1")
	save("2", false, []string{"d", "b"})
	save("3", false, []string{"e", "a", "b", "c"}, "d", "none")
	of := func(name, version string) string { return string(stateObject(name, version)) }
	expect("3", of("a", "3"), of("b", "3"), of("c", "3"), of("e", "3"))
	save("4", true, []string{"b"})
	expect("4", of("b", "4"))

	files, err := filepath.Glob(filepath.Join(folder, "id", "*.snapshot"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(text); at += 11 {
		damaged := slices.Clone(text)
		damaged[at] ^= 1
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, ok, err := view.Checkpoint()
		if err == nil && ok {
			err = view.Load(func([]byte) error { return nil })
		}
		if err == nil {
			t.Errorf("byte %d of %d is another one, and nobody has noticed", at, len(text))
		}
	}
	save("5", true, []string{"b"})
	expect("5", of("b", "5"))
	left := filepath.Join(folder, "id", ".x.part")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if s, err = OpenState(folder, "id"); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := os.Stat(left); err == nil {
		t.Error("what was being written is there")
	}
}
