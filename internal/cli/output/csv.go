package output

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
)

// TypeCSV prints the columns of one type, those of wide tables included, as comma-separated values. Dates are
// timestamps rather than ages, and what is missing is empty.
type TypeCSV struct {
	w             *csv.Writer
	columns       []column
	withNamespace bool
	header        []string // until it is printed
}

// NewTypeCSV returns a printer for these columns, or for the age alone when there are none.
func NewTypeCSV(w io.Writer, columns []crd.Column, withNamespace, noHeaders bool) *TypeCSV {
	p := &TypeCSV{w: csv.NewWriter(w), columns: newColumns(columns), withNamespace: withNamespace}
	if noHeaders {
		return p
	}
	if withNamespace {
		p.header = append(p.header, "NAMESPACE")
	}
	p.header = append(p.header, "NAME")
	for _, c := range p.columns {
		p.header = append(p.header, strings.ToUpper(c.Name))
	}
	return p
}

// Print implements Printer.
func (p *TypeCSV) Print(obj *unstructured.Unstructured) error {
	if p.header != nil {
		if err := p.w.Write(p.header); err != nil {
			return err
		}
		p.header = nil
	}
	var row []string
	if p.withNamespace {
		row = append(row, obj.GetNamespace())
	}
	row = append(row, obj.GetName())
	for _, c := range p.columns {
		cell := ""
		if value := c.value(obj); value != nil {
			cell = fmt.Sprint(value)
		}
		row = append(row, cell)
	}
	return p.w.Write(row)
}

// Close implements Printer. Without any object there is no header either.
func (p *TypeCSV) Close() error {
	p.w.Flush()
	return p.w.Error()
}
