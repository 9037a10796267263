package indexers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// TestJSONAsToolsWriteIt verifies that surrogate pairs in JSON are decoded to characters, and that the labels
// and annotations that tools add are accepted.
func TestJSONAsToolsWriteIt(t *testing.T) {
	text := `{"apiVersion": "crdcache.dev/v1beta1", "kind": "IndexConfig", "metadata": {"name": "n", "namespace": "m", "labels": {"app": "x"}, "annotations": {"a\u00e9": "\uD83D\uDE00"}},
		"spec": {"resources": [{"name": "w", "match": {"group": "example.com", "kind": "Widget"}, "indexes": [
		{"name": "a", "path": ".a", "default": "\ud83d\ude00 \\ud83d\\ude00 \\\ud83d\ude00"}]}]}}`
	c, err := indexers.Parse(indexers.Source{Name: "j.json", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	want := "\U0001f600 \\ud83d\\ude00 \\\U0001f600"
	if got := indexers.Compile(c.Resources[0]).Keys(map[string]any{})[0]; len(got) != 1 || got[0] != want {
		t.Errorf("keys = %q, want %q", got, want)
	}
}

// FuzzParse checks that no input panics and that all findings are inside the file.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../testdata/indexes/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Add([]byte("a:\u2028b: \u0085\r\n- \"\\"))
	f.Add([]byte("%YAML 1.1\n--- !!map {? a : b}\n...\n--- x"))
	crds := definitions(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := indexers.Source{Name: "f.yaml", Data: data}
		c, err := indexers.Parse(s)
		if (c == nil) == (err == nil) {
			t.Fatalf("Parse = %v, %v; want either a config or an error", c, err)
		}
		var diagnostics []indexers.Diagnostic
		var configErr *indexers.ConfigError
		if errors.As(err, &configErr) {
			diagnostics = configErr.Diagnostics
		}
		known := func([]string) ([]*crd.Definition, error) { return crds, nil }
		_, checkErr := indexers.CheckSources(indexers.CheckOptions{Definitions: known}, s)
		if err != nil && (!errors.As(checkErr, &configErr) || len(configErr.Diagnostics) < len(diagnostics)) {
			t.Fatalf("CheckSources: got the error %v, want at least the findings of Parse: %v", checkErr, err)
		}
		if c != nil {
			warnings, err := c.Check(crds)
			diagnostics = append(append(diagnostics, c.Warnings...), warnings...)
			if errors.As(err, &configErr) {
				diagnostics = append(diagnostics, configErr.Diagnostics...)
			}
			for _, r := range c.Resources {
				for _, fn := range indexers.Compile(r).Indexers() {
					if _, err := fn(map[string]any{"metadata": map[string]any{"name": "x"}}); err != nil {
						t.Error(err)
					}
				}
			}
		}
		for _, d := range diagnostics {
			checkDiagnostic(t, d, s)
			if !strings.HasPrefix(d.Text(), d.String()) {
				t.Errorf("Text = %q, want the prefix %q", d.Text(), d.String())
			}
		}
	})
}
