package print

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TypeCSV prints the columns of one type, those of wide tables included, as comma-separated values. Dates are
// timestamps rather than ages, and what is missing is empty.
type TypeCSV struct {
	w             *csv.Writer
	rows          Rows
	withNamespace bool
	header        []string // until it is printed
}

// NewTypeCSV returns a printer with these rows.
func NewTypeCSV(w io.Writer, rows Rows, withNamespace, noHeaders bool) *TypeCSV {
	p := &TypeCSV{w: csv.NewWriter(w), rows: rows, withNamespace: withNamespace}
	if noHeaders {
		return p
	}
	if withNamespace {
		p.header = append(p.header, "NAMESPACE")
	}
	for _, definition := range rows.Definitions() {
		p.header = append(p.header, strings.ToUpper(definition.Name))
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
	for _, value := range p.rows.Values(obj) {
		cell := ""
		if value != nil {
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
