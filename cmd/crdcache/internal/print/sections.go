package print

import (
	"bufio"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/discovery"
)

// bufferSize makes the cost of write calls negligible.
const bufferSize = 1 << 16

// Section is the objects of one type.
type Section struct {
	Resource discovery.Resource
	// Empty is set if it is known that there are no objects.
	Empty bool
	// Rows formats the rows of a table.
	Rows RowFormatter
	// Each passes the objects to the writer.
	Each func(w *Writer) error
}

// SectionOptions configure the output of sections.
type SectionOptions struct {
	// Cluster names one of several clusters. Empty means that the command reads only one.
	Cluster string
	// Namespace is the requested namespace. Empty means all.
	Namespace string
	// SingleObject is set for a single named object.
	SingleObject bool
	// OmitEmptyMessage suppresses "No resources found".
	OmitEmptyMessage bool
}

// Output is the stdout of a command. It prints the sections of all clusters as one list, or as tables that
// continue in the next cluster if they have the same columns.
type Output struct {
	genericiooptions.IOStreams
	Style

	out     *bufio.Writer
	printed int
	// failed is set if the output cannot be completed.
	failed bool
	list   Printer // nil for tables, and before the first section
	csv    *csvTable
	table  *openTable
	empty  string // the message if nothing is printed
}

// openTable is the last table, with the type and the cluster of its last rows.
type openTable struct {
	*TypeTable
	kind    schema.GroupKind
	cluster string
}

// NewOutput returns an output that must be closed.
func NewOutput(streams genericiooptions.IOStreams, style Style) *Output {
	return &Output{IOStreams: streams, Style: style, out: bufio.NewWriterSize(streams.Out, bufferSize)}
}

// Print writes sections of one cluster.
func (p *Output) Print(ctx context.Context, sections []Section, options SectionOptions) error {
	write := p.printList
	if p.Format.IsTable() {
		write = p.printTables
	}
	err := write(&Writer{Output: p, SectionOptions: options, ctx: ctx}, sections)
	// Also after an error, so that the last line is complete.
	if flushed := p.flush(); err == nil {
		err = flushed
	}
	p.failed = p.failed || err != nil && (options.Cluster == "" || ctx.Err() != nil)
	return err
}

// Close completes the list or the last table. For tables without objects it writes a message to stderr.
func (p *Output) Close() error {
	if p.failed {
		return nil
	}
	err := p.closeTable()
	if p.list != nil {
		err = p.list.Close()
	}
	if err == nil && p.printed == 0 && p.empty != "" {
		fmt.Fprintln(p.ErrOut, p.empty)
	}
	if flushed := p.flush(); err == nil {
		err = flushed
	}
	return err
}

// Printed returns the number of printed objects.
func (p *Output) Printed() int { return p.printed }

func (p *Output) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// printList writes the objects of all types as one list.
func (p *Output) printList(w *Writer, sections []Section) (err error) {
	if p.list == nil {
		framing := List
		if w.SingleObject {
			framing = SingleNamed
		}
		if p.list, err = New(p.Format, p.out, framing, p.NoHeaders); err != nil {
			return err
		}
		if w.Cluster != "" {
			ShowClusters(p.list)
		}
	}
	for _, s := range sections {
		if err := w.section(s, p.list); err != nil {
			return err
		}
	}
	return nil
}

// printTables writes a table for each type with objects, separated by empty lines if the tables have headers.
// CSV is one table for all types, because readers expect one header.
func (p *Output) printTables(w *Writer, sections []Section) error {
	filled := slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return s.Empty })
	severalTypes := len(sections) > 1
	if len(sections) > 0 && !w.OmitEmptyMessage {
		p.empty = w.emptyMessage(sections)
	}
	if p.csv == nil && len(filled) > 0 {
		p.csv = p.newCSV(w, filled, severalTypes)
	}
	for _, s := range filled {
		rows := p.Rows(s.Rows)
		var printer Printer
		var err error
		if p.Format.Name == CSV {
			printer = p.csv.printerFor(csvResource{Rows: rows, Kind: s.Resource.GVK.GroupKind().String(),
				Cluster: w.Cluster})
		} else if printer, err = p.continueTable(w, s, rows, severalTypes); err != nil {
			return err
		}
		if err := w.section(s, printer); err != nil {
			return err
		}
	}
	return nil
}

// continueTable returns the last table if it can have the rows of another cluster, or else a new one.
func (p *Output) continueTable(w *Writer, s Section, rows RowFormatter, withKind bool) (Printer, error) {
	style := p.Table(s.Resource, w.Namespace, withKind)
	if w.Cluster != "" {
		style.WithNamespace = false
		rows = WithCluster(rows, w.Cluster, s.Resource.Scope == discovery.Namespaced)
	}
	kind := s.Resource.GVK.GroupKind()
	if p.table != nil && p.table.kind == kind && p.table.cluster != w.Cluster && p.table.setRows(rows) {
		p.table.cluster = w.Cluster
		return p.table, nil
	}
	if err := p.closeTable(); err != nil {
		return nil, err
	}
	if p.table != nil && !p.NoHeaders {
		fmt.Fprintln(p.out) // bufio keeps the first error for flush
	}
	p.table = &openTable{NewTypeTable(p.out, rows, style), kind, w.Cluster}
	return p.table, nil
}

func (p *Output) closeTable() error {
	if p.table == nil {
		return nil
	}
	return p.table.Close()
}

// newCSV returns a table for the types of the first cluster with objects.
func (p *Output) newCSV(w *Writer, sections []Section, withKind bool) *csvTable {
	types := make([]csvResource, len(sections))
	withNamespace := w.Cluster != ""
	for i, s := range sections {
		types[i].Rows = p.Rows(s.Rows)
		withNamespace = withNamespace || p.Table(s.Resource, w.Namespace, withKind).WithNamespace
	}
	t := newCSV(p.out, types, withNamespace, withKind || p.ShowKind, p.NoHeaders)
	t.errOut = p.ErrOut
	if w.Cluster != "" {
		t.header = slices.Insert(t.header, 0, "CLUSTER")
	}
	return t
}

// emptyMessage returns kubectl's message for no objects.
func (w *Writer) emptyMessage(sections []Section) string {
	for _, s := range sections {
		if w.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			return fmt.Sprintf("No resources found in %s namespace.", w.Namespace)
		}
	}
	return "No resources found"
}
