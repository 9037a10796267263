package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// ReplaceFile replaces a file atomically.
func ReplaceFile(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name+".new", []byte(text), 0o600))
	must(t, os.Rename(name+".new", name))
}

// ConfigMapMount is a folder like the mount of a ConfigMap. Its files are links through the link ..data,
// which points to a folder with the current version.
type ConfigMapMount struct {
	Dir      string
	versions int
}

// Swap publishes a new version of the files and removes the previous one, like the kubelet.
func (m *ConfigMapMount) Swap(t testing.TB, files map[string]string) {
	t.Helper()
	before := fmt.Sprintf("..%d", m.versions)
	m.versions++
	version := fmt.Sprintf("..%d", m.versions)
	must(t, os.Mkdir(filepath.Join(m.Dir, version), 0o700))
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(m.Dir, version, name), []byte(text), 0o600))
		if m.versions == 1 {
			must(t, os.Symlink(filepath.Join("..data", name), filepath.Join(m.Dir, name)))
		}
	}
	must(t, os.Symlink(version, filepath.Join(m.Dir, "..data_tmp")))
	must(t, os.Rename(filepath.Join(m.Dir, "..data_tmp"), filepath.Join(m.Dir, "..data")))
	must(t, os.RemoveAll(filepath.Join(m.Dir, before)))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
