package print

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzParseFormat checks that each accepted format has the input as text, and prints an object or an error
// with the object's name.
func FuzzParseFormat(f *testing.F) {
	for _, seed := range []string{
		"table", "table=", "json=x", "xml", "", "=", "custom-columns", "custom-columns=", "custom-columns=A",
		"custom-columns=A:.metadata.name,B:{.spec}",
		"custom-columns=A:", "custom-columns=:.a", "custom-columns=A:.a:b", "custom-columns=A:{.a}{.b}",
		"custom-columns=A:.spec.list[?(@.a==1)].b", "custom-columns=A:..*",
		"jsonpath={.a", "jsonpath={range .items[*]}{.metadata.name}{end}", "jsonpath={range}",
		"jsonpath={end}", "jsonpath={.spec.list[-5:9:0]}", "jsonpath-as-json={.metadata}",
		"jsonpath=.metadata.name", "jsonpath={.spec.list[0:2:-1]}", "go-template={{.metadata.name}}",
		"template=0", "go-template={{", "go-template={{index .spec.list 9}}",
		"jsonpath={.spec.list[?(@.a>\"x\")]}",
	} {
		f.Add(seed)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gizmo", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"list": []any{map[string]any{"a": int64(1), "b": "x"}, nil, "s", 1.5},
			"null": nil, "on": true},
	}}
	f.Fuzz(func(t *testing.T, text string) {
		// formats that read files of the machine
		if strings.Contains(text, "-file=") || strings.HasPrefix(text, "templatefile=") {
			return
		}
		for alias, name := range formatAliases {
			if argument, ok := strings.CutPrefix(text, alias+"="); ok {
				text = name + "=" + argument
			}
		}
		if strings.HasPrefix(text, "go-template=") && (strings.Contains(text, "%") ||
			strings.Contains(text, "template") && strings.Count(text, "template") > 1) {
			return // callers are responsible for large widths and recursion
		}
		format, err := ParseFormat(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" || format != (Format{}) {
				t.Errorf("ParseFormat(%q) = %+v, %q, want no format and an error with text", text, format, err)
			}
			return
		}
		if format.Name != text && format.Name+"="+format.Argument != text {
			t.Errorf("ParseFormat(%q) = %+v, want the name and the argument of the text", text, format)
		}
		if format.IsTable() {
			return
		}
		var out bytes.Buffer
		printer, err := NewPrinter(format, &out, List, false)
		if err != nil {
			t.Fatalf("ParseFormat(%q) succeeded, but NewPrinter() = %v", text, err)
		}
		if err := printer.Print(NewObject(object)); err != nil && err.Error() == "" {
			t.Errorf("%q: an error without text", text)
		}
		_ = printer.Close() // errors of templates may occur for the list
	})
}
