package print

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery/crd"
)

func TestSortKeys(t *testing.T) {
	keys := []string{"b", "web/b", "a/x", "web/a", "a-b/x", "a.b/x", "a", "A/x", "a/", "é/x", "a0/x"}
	SortKeys(keys)
	// "-" and "." sort before "/", and digits after it.
	want := []string{"A/x", "a", "a-b/x", "a.b/x", "a/", "a/x", "a0/x", "b", "web/a", "web/b", "é/x"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
}

func TestParseFormat(t *testing.T) {
	for text, want := range map[string]Format{
		"json":                      {Name: JSON},
		"jsonpath={.items}":         {Name: JSONPath, Argument: "{.items}"},
		"custom-columns=A:.b=c,D:e": {Name: CustomColumns, Argument: "A:.b=c,D:e"},
		"template={{.kind}}":        {Name: GoTemplate, Argument: "{{.kind}}"},
	} {
		if got, err := ParseFormat(text); err != nil || got != want {
			t.Errorf("ParseFormat(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"xml":            `unknown output format "xml": use one of table, wide,`,
		"":               `unknown output format ""`,
		"json=x":         "the output format json takes no argument",
		"jsonpath":       "the output format jsonpath needs an argument, as in jsonpath=",
		"custom-columns": "as in custom-columns=NAME:.metadata.name",
		"go-template=":   "the output format go-template needs an argument",
		"templatefile=":  "the output format go-template-file needs an argument",
	} {
		if _, err := ParseFormat(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFormat(%q): %v; want %q", text, err, want)
		}
	}
}

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

func TestCSV(t *testing.T) {
	columns := []crd.Column{
		{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
		{Name: "Since", Type: "date", JSONPath: ".metadata.creationTimestamp", Priority: 1},
		{Name: "Note", Type: "string", JSONPath: ".spec.note"},
	}
	obj := newThing("a", map[string]any{"size": int64(3), "note": "x, \"y\""})
	obj.Object["metadata"].(map[string]any)["creationTimestamp"] = "2020-01-02T03:04:05Z"
	var out bytes.Buffer
	p := newCSV(&out, []csvResource{{Rows: NewRows(columns)}}, true, false,
		false).printerFor(csvResource{Rows: NewRows(columns)})
	for _, o := range []*unstructured.Unstructured{obj, newThing("b", nil)} {
		if err := p.Print(NewObject(o)); err != nil {
			t.Fatal(err)
		}
	}
	want := "NAMESPACE,NAME,SIZE,SINCE,NOTE\nweb,a,3,2020-01-02T03:04:05Z,\"x, \"\"y\"\"\"\nweb,b,,,\n"
	if err := p.Close(); err != nil || out.String() != want {
		t.Errorf("%v, output\n%swant\n%s", err, out.String(), want)
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

// TestCSVOfTypes verifies that several types are printed with one header, and values in the right columns.
func TestCSVOfTypes(t *testing.T) {
	column := func(name string) crd.Column {
		return crd.Column{Name: name, Type: "string",
			JSONPath: ".spec." + name}
	}
	types := []csvResource{
		{NewRows([]crd.Column{column("a"), column("b")}), "One", ""},
		{NewRows([]crd.Column{column("b"), column("c"), column("b")}), "Two", ""},
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "x", "namespace": "n"}, "spec": map[string]any{"a": "A",
			"b": "B", "c": "C"},
	}}
	var out strings.Builder
	table := newCSV(&out, types, true, true, false)
	for _, one := range types {
		printer := table.printerFor(one)
		if err := printer.Print(NewObject(object)); err != nil {
			t.Fatal(err)
		}
		if err := printer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const want = "KIND,NAMESPACE,NAME,A,B,C,B\nOne,n,x,A,B,,\nTwo,n,x,,B,C,B\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}
