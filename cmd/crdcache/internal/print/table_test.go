package print

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery/crd"
)

func TestTableOfColumnsThatCannotBeParsed(t *testing.T) {
	good := crd.Column{Name: "Good", Type: "string", JSONPath: ".spec.text"}
	bad := crd.Column{Name: "Bad", Type: "string", JSONPath: ".spec["}
	tests := map[string]struct {
		columns []crd.Column
		want    string
	}{
		"first":      {[]crd.Column{bad, good}, "NAME\nx\n"},
		"in between": {[]crd.Column{good, bad, good}, "NAME   GOOD\nx      some\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			table := NewTypeTable(&out, NewRows(tt.columns), printers.PrintOptions{})
			obj := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "x"},
				"spec":     map[string]any{"text": "some"},
			}}
			if err := table.Print(Decoded(obj)); err != nil {
				t.Fatal(err)
			}
			if err := table.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
