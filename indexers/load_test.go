package indexers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// checkDiagnostic holds for each finding, whatever the input.
func checkDiagnostic(t testing.TB, d indexers.Diagnostic, s indexers.Source) {
	t.Helper()
	if d.File != s.Name || d.Message == "" || d.Hint == "" || d.Length < 1 {
		t.Errorf("incomplete: %+v", d)
	}
	if d.Line < 1 || d.Column < 1 || d.Column > utf8.RuneCountInString(d.Source)+1 {
		t.Errorf("the place is not in the line %q: %+v", d.Source, d)
	}
	if !strings.Contains(string(s.Data), d.Source) {
		t.Errorf("the line is not in the file: %+v", d)
	}
	breaks := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(string(s.Data))
	if d.Line > strings.Count(breaks, "\n")+1 {
		t.Errorf("the line is behind the end of the file: %+v", d)
	}
}

func header(resources string) string {
	return "apiVersion: crdcache.dev/v1alpha1\nkind: IndexConfig\nmetadata: {name: NAME}\nspec:\n  resources:\n" + resources
}

func TestFilesAreMerged(t *testing.T) {
	text := func(config, resource string) []byte {
		return []byte(strings.Replace(header("  - name: "+resource+"\n    match: {group: example.com, kind: Widget}\n    indexes: [{name: a, path: .a}]\n"), "NAME", config, 1))
	}
	c, err := indexers.Parse(
		indexers.Source{Name: "a.yaml", Data: append(append(text("one", "x"), "---\n"...), text("two", "y")...)},
		indexers.Source{Name: "b.yaml", Data: append([]byte("\ufeff"), text("three", "z")...)},
	)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, r := range c.Resources {
		got += r.Config + "/" + r.Name + " "
	}
	if want := "one/x two/y three/z "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, ok := c.Resource("y"); !ok {
		t.Error("no resource y")
	}
	if r, ok := c.Resource("n"); ok {
		t.Errorf("there is a resource %v", r)
	}

	_, err = indexers.Parse(
		indexers.Source{Name: "a.yaml", Data: text("one", "x")},
		indexers.Source{Name: "b.yaml", Data: text("two", "x")},
	)
	want := "b.yaml:6:11: E007: resource \"x\" is already defined at a.yaml:6:11; choose another name for one of them\n    - name: x\n            ^"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	good, large := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "large.yaml")
	for path, text := range map[string]string{
		good:  header("  - name: w\n    match: {group: '', version: v1, kind: Pod}\n    indexes: [{name: a, path: .a}]\n"),
		large: strings.Repeat("#", 5<<20),
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(text, "NAME", "n", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := indexers.Load(good)
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Resources[0].Match; m != (indexers.Match{Version: "v1", Kind: "Pod"}) {
		t.Errorf("got %+v", m)
	}
	_, err = indexers.Load(filepath.Join(dir, "none.yaml"), large, dir, good)
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) != 3 {
		t.Fatalf("got %v", err)
	}
	for _, d := range ce.Diagnostics {
		if d.Code != indexers.CodeFile || d.Hint == "" {
			t.Errorf("got %s", d)
		}
	}
}

// Warnings of the path language come with their place in the file, and do not refuse the config.
func TestPathWarnings(t *testing.T) {
	text := header("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n    - {name: a, path: \".metadata.labels['a.b/c']\"}\n")
	s := indexers.Source{Name: "w.yaml", Data: []byte(strings.Replace(text, "NAME", "n", 1))}
	c, err := indexers.Parse(s)
	if err != nil || len(c.Warnings) != 1 {
		t.Fatal(c, err)
	}
	w := c.Warnings[0]
	checkDiagnostic(t, w, s)
	if !strings.HasPrefix(w.String(), "w.yaml:9:41: W101: ") {
		t.Errorf("got %s", w)
	}
	kubectl := strings.Replace(string(s.Data), "{name: a,", "{name: a, dialect: kubectl,", 1)
	if c, err = indexers.Parse(indexers.Source{Name: "w.yaml", Data: []byte(kubectl)}); err != nil || len(c.Warnings) != 0 {
		t.Errorf("the kubectl dialect warns too: %v, %v", c, err)
	}
}

func TestNoSchema(t *testing.T) {
	text := header("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [{name: a, path: .a}]\n")
	s := indexers.Source{Name: "w.yaml", Data: []byte(strings.Replace(text, "NAME", "n", 1))}
	c, err := indexers.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	d := &crd.Definition{Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"}, Versions: []crd.Version{{Name: "v1", Served: true}}}
	warnings, err := c.Check([]*crd.Definition{d})
	if err != nil || len(warnings) != 1 || warnings[0].Code != indexers.CodeNoSchema {
		t.Errorf("got %v, %v", warnings, err)
	}
	d.Versions[0].Served = false
	_, err = c.Check([]*crd.Definition{d})
	if err == nil || !strings.Contains(err.Error(), "E305") {
		t.Errorf("a version that is not served is accepted: %v", err)
	}
}

// However a line ends, and behind a byte order mark, places count the same.
func TestPlacesInOtherFiles(t *testing.T) {
	text := strings.Replace(header("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes:\n    - {name: ä, path: '.a['}\n"), "NAME", "n", 1)
	want := "w.yaml:9:14: E015 w.yaml:9:26: E102 "
	for reason, data := range map[string]string{
		"LF": text, "CRLF": strings.ReplaceAll(text, "\n", "\r\n"), "CR": strings.ReplaceAll(text, "\n", "\r"),
		"byte order mark": "\ufeff" + text, "Unicode": strings.ReplaceAll(text, "\n", "\u2028"),
	} {
		s := indexers.Source{Name: "w.yaml", Data: []byte(data)}
		_, err := indexers.Parse(s)
		var ce *indexers.ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("%s: %v", reason, err)
			continue
		}
		got := ""
		for _, d := range ce.Diagnostics {
			checkDiagnostic(t, d, s)
			got += strings.Join(strings.SplitAfterN(d.String(), ": ", 3)[:1], "") + string(d.Code) + " "
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}

// JSON is YAML, also when it is all on one line.
func TestJSONOnOneLine(t *testing.T) {
	resource := func(i int) string {
		return fmt.Sprintf(`{"name": "r%d", "match": {"group": "example.com", "kind": "Widget"}, "indexes": [{"name": "a", "path": ".a"}]}`, i)
	}
	all := make([]string, 2000)
	for i := range all {
		all[i] = resource(i)
	}
	text := `{"apiVersion": "crdcache.dev/v1alpha1", "kind": "IndexConfig", "metadata": {"name": "n"}, "spec": {"resources": [` + strings.Join(all, ", ") + `]}}`
	c, err := indexers.Parse(indexers.Source{Name: "j.json", Data: []byte(text)})
	if err != nil || len(c.Resources) != len(all) {
		t.Errorf("got %v, %v", c, err)
	}
}

// FuzzParse proves that no input panics and that all findings are inside the file.
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
			t.Fatalf("%v, %v", c, err)
		}
		var all []indexers.Diagnostic
		var ce *indexers.ConfigError
		if errors.As(err, &ce) {
			all = ce.Diagnostics
		}
		if c != nil {
			warnings, err := c.Check(crds)
			all = append(append(all, c.Warnings...), warnings...)
			if errors.As(err, &ce) {
				all = append(all, ce.Diagnostics...)
			}
			for _, r := range c.Resources {
				for _, fn := range indexers.Compile(r).Indexers() {
					if _, err := fn(map[string]any{"metadata": map[string]any{"name": "x"}}); err != nil {
						t.Error(err)
					}
				}
			}
		}
		for _, d := range all {
			checkDiagnostic(t, d, s)
			if !strings.HasPrefix(d.Text(), d.String()) {
				t.Errorf("%q does not begin with %q", d.Text(), d.String())
			}
		}
	})
}
