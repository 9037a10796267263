package print

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/naming"
)

const bufferSize = 1 << 16

type Section struct {
	Resource discovery.Resource
	// Empty is set if the type is known to have no objects.
	Empty bool
	Rows  *Rows
	// Each passes the objects to the writer.
	Each func(w *Writer) error
}

type SectionOptions struct {
	// Cluster is empty if the command reads only one cluster.
	Cluster string
	// Namespace is the requested namespace. Empty means all.
	Namespace string
	// SingleObject is set for a single named object.
	SingleObject bool
	// OmitEmptyMessage suppresses "No resources found".
	OmitEmptyMessage bool
}

// Output is the stdout of a command. It prints the sections of all clusters as one list or as tables. A table
// continues in the next cluster if the columns are equal.
type Output struct {
	genericiooptions.IOStreams
	Style

	out              *bufio.Writer
	printed          int
	cannotComplete   bool
	listPrinter      Printer // nil for tables, and before the first section
	csv              *csvTable
	table            *openTable
	noObjectsMessage string // the message if nothing is printed
}

// openTable is the last table. Its last rows have kind and cluster.
type openTable struct {
	*TypeTable
	kind    schema.GroupKind
	cluster string
}

// NewOutput returns an output that must be closed.
func NewOutput(streams genericiooptions.IOStreams, style Style) *Output {
	return &Output{IOStreams: streams, Style: style, out: bufio.NewWriterSize(streams.Out, bufferSize)}
}

// Print writes sections of one cluster. Without sections it writes nothing: no type was read, and an empty
// list would be an answer.
func (p *Output) Print(ctx context.Context, sections []Section, options SectionOptions) error {
	if len(sections) == 0 {
		return nil
	}
	printSections := p.printList
	if p.Format.IsTable() {
		printSections = p.printTables
	}
	err := printSections(&Writer{Output: p, SectionOptions: options, ctx: ctx}, sections)
	err = cmp.Or(err, p.flush()) // also after an error, so that the last line is complete
	p.cannotComplete = p.cannotComplete || err != nil && (options.Cluster == "" || ctx.Err() != nil)
	return err
}

// Close completes the list or the last table. For tables without objects it writes a message to stderr.
func (p *Output) Close() error {
	if p.cannotComplete {
		return nil
	}
	err := p.closeTable()
	if p.listPrinter != nil {
		err = p.listPrinter.Close()
	}
	if err == nil && p.printed == 0 && p.noObjectsMessage != "" {
		fmt.Fprintln(p.ErrOut, p.noObjectsMessage)
	}
	return cmp.Or(err, p.flush())
}

func (p *Output) Printed() int { return p.printed }

func (p *Output) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// printList writes the objects of all types as one list.
func (p *Output) printList(w *Writer, sections []Section) (err error) {
	if p.listPrinter == nil {
		framing := List
		if w.SingleObject {
			framing = SingleNamed
		}
		if p.listPrinter, err = NewPrinter(p.Format, p.out, framing, p.NoHeaders); err != nil {
			return err
		}
		if w.Cluster != "" {
			ShowClusters(p.listPrinter)
		}
	}
	return naming.Each(sections, func(s Section) error { return w.printSection(s, p.listPrinter) })
}

// printTables writes a table for each type with objects. Tables with headers are separated by empty lines.
// CSV is one table for all types, because programs that read CSV expect one header.
func (p *Output) printTables(w *Writer, sections []Section) error {
	nonEmpty := slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return s.Empty })
	hasSeveralTypes := len(sections) > 1
	if !w.OmitEmptyMessage {
		p.noObjectsMessage = w.emptyMessage(sections)
	}
	if p.csv == nil && len(nonEmpty) > 0 {
		p.csv = p.newCSV(w, nonEmpty, hasSeveralTypes)
	}
	for _, s := range nonEmpty {
		rows := p.WithLabelColumns(s.Rows)
		var printer Printer
		var err error
		if p.Format.Name == CSV {
			printer = p.csv.printerFor(rows, s.Resource.GVK.GroupKind().String(), w.Cluster)
		} else if printer, err = p.continueTable(w, s, rows, hasSeveralTypes); err != nil {
			return err
		}
		if err := w.printSection(s, printer); err != nil {
			return err
		}
	}
	return nil
}

// continueTable returns the table of the previous cluster if it has the same type and columns, or a new
// table.
func (p *Output) continueTable(w *Writer, s Section, rows *Rows, withKind bool) (Printer, error) {
	style := p.TableOptions(s.Resource, w.Namespace, withKind)
	if w.Cluster != "" {
		style.WithNamespace = false
		rows = WithCluster(rows, w.Cluster, s.Resource.Scope == discovery.Namespaced)
	}
	kind := s.Resource.GVK.GroupKind()
	if p.table != nil && p.table.kind == kind && p.table.cluster != w.Cluster &&
		slices.EqualFunc(p.table.rows.Columns, rows.Columns, SameColumn) {
		p.table.rows, p.table.cluster = rows, w.Cluster
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

// emptyMessage returns kubectl's message for no objects.
func (w *Writer) emptyMessage(sections []Section) string {
	for _, s := range sections {
		if w.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			return fmt.Sprintf("No resources found in %s namespace.", w.Namespace)
		}
	}
	return "No resources found"
}
