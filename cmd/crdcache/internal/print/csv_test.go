package print

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TestCSVOfTypes prints several types with one header and values in the right columns.
func TestCSVOfTypes(t *testing.T) {
	column := func(name string) crd.Column {
		return crd.Column{Name: name, Type: "string",
			JSONPath: ".spec." + name}
	}
	types := []csvType{
		{NewRows([]crd.Column{column("a"), column("b")}), "One"},
		{NewRows([]crd.Column{column("b"), column("c"), column("b")}), "Two"},
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "x", "namespace": "n"}, "spec": map[string]any{"a": "A",
			"b": "B", "c": "C"},
	}}
	var out strings.Builder
	table := newCSV(&out, types, true, true, false)
	for _, one := range types {
		printer := table.printerFor(one)
		if err := printer.Print(Decoded(object)); err != nil {
			t.Fatal(err)
		}
		if err := printer.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const want = "KIND,NAMESPACE,NAME,A,B,C,B\nOne,n,x,A,B,,\nTwo,n,x,,B,C,B\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
}
