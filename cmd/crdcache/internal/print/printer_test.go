package print

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
)

// TestTemplates verifies that templates get kubectl's list, and compares custom columns with kubectl's.
func TestTemplates(t *testing.T) {
	objects := []*unstructured.Unstructured{newThing("a",
		map[string]any{"n": int64(1), "tags": []any{"x", "y"}}), newThing("b", nil)}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"columns": "NAME  TAGS\nmetadata.name {.spec.tags[*]}\n",
		"path":    "{.items[*].metadata.name}{\"\\n\"}", "template": "{{len .items}} {{.kind}}\n", "huge": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// a sparse file, larger than the limit
	if err := os.Truncate(filepath.Join(dir, "huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"jsonpath={.items[*].metadata.name}":                               "a b",
		"jsonpath-as-json={.items[0].spec.n}":                              "[\n    1\n]\n",
		"go-template={{range .items}}{{.metadata.name}},{{end}}{{.kind}}":  "a,b,List",
		"custom-columns=NAME:.metadata.name,N:{spec.n},TAGS:.spec.tags[*]": "NAME   N        TAGS\na      1        x,y\nb      <none>   <none>\n",
		"custom-columns-file=" + dir +
			"/columns": "NAME   TAGS\na      x,y\nb      <none>\n",
		"jsonpath-file=" + dir + "/path":        "a b\n",
		"go-template-file=" + dir + "/template": "2 List\n",
		"jsonl": `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"web"},"spec":{"n":1,"tags":["x","y"]}}` + "\n" +
			`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b","namespace":"web"},"spec":null}` + "\n",
	} {
		f, err := ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		printer, err := NewPrinter(f, &out, List, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects {
			if err := printer.Print(NewObject(obj)); err != nil {
				t.Fatal(err)
			}
		}
		if err := printer.Close(); err != nil || out.String() != want {
			t.Errorf("%s: %v, output\n%swant\n%s", format, err, out.String(), want)
		}
	}
	for _, format := range []string{"custom-columns=NAME", "custom-columns=A:{.b", "custom-columns=A:.b[",
		"custom-columns-file=/none", "jsonpath={.a", "go-template={{",
		"jsonpath-file=/none", "go-template-file=" + dir, "jsonpath-file=" + dir +
			"/huge", "go-template-file=" + dir + "/huge", "custom-columns-file=" + dir + "/huge",
	} {
		if _, err := ParseFormat(format); err == nil {
			t.Errorf("ParseFormat(%s) succeeded, want an error", format)
		}
	}
}

// fullWriter fails after some writes.
type fullWriter struct{ remaining int }

var errFull = errors.New("no space left")

func (f *fullWriter) Write(p []byte) (int, error) {
	if f.remaining == 0 {
		return 0, errFull
	}
	f.remaining--
	return len(p), nil
}

// TestWriteErrors checks that each failed write is returned.
func TestWriteErrors(t *testing.T) {
	table := func(w io.Writer) Printer { return NewTypeTable(w, NewRows(nil), printers.PrintOptions{}) }
	format := func(name string) func(io.Writer) Printer {
		return func(w io.Writer) Printer {
			p, err := NewPrinter(Format{Name: name}, w, List, false)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	tests := map[string]func(io.Writer) Printer{JSON: format(JSON), YAML: format(YAML), Name: format(Name),
		"table": table}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			print := func(room int) (failed []bool) {
				p := make(&fullWriter{remaining: room})
				for _, name := range []string{"a", "b"} {
					failed = append(failed, errors.Is(p.Print(NewObject(newThing(name, nil))), errFull))
				}
				return append(failed, errors.Is(p.Close(), errFull))
			}
			const enough = 1000
			if failed := print(enough); slices.Contains(failed, true) {
				t.Fatalf("with enough space, failed writes: %v", failed)
			}
			room := 0
			for ; room < enough && slices.Contains(print(room), true); room++ {
			}
			if room == 0 || room == enough {
				t.Errorf("the output needs %d writes, want some, and less than %d", room, enough)
			}
			for fewer := range room {
				if !slices.Contains(print(fewer), true) {
					t.Errorf("the failure of write %d is not returned", fewer+1)
				}
			}
		})
	}
}
