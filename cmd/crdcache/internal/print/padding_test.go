package print

import (
	"bytes"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// TestCellsOfSeveralLines compares with the output of kubectl 1.37. TestSameAsKubectl runs kubectl itself.
func TestCellsOfSeveralLines(t *testing.T) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string"}, {Name: "Status", Type: "string"}, {Name: "Age", Type: "string"},
		},
		Rows: []metav1.TableRow{
			{Cells: []any{"a", "short", "1s"}},
			{Cells: []any{"b", "two\nlines and more", "2s"}},
		},
	}
	tests := map[string]struct {
		options printers.PrintOptions
		want    string
	}{
		"header": {printers.PrintOptions{},
			"NAME   STATUS               AGE\na      short                1s\nb      two...               2s\n"},
		"no header": {printers.PrintOptions{NoHeaders: true},
			"a     short                1s\nb     two...               2s\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			columns := printers.GetNewTabWriter(&out)
			if err := NewTablePrinter(test.options).PrintObj(table.DeepCopy(), columns); err != nil {
				t.Fatal(err)
			}
			if err := columns.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != test.want {
				t.Errorf("printed\n%swant\n%s", got, test.want)
			}
		})
	}
}
