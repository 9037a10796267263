package print

import (
	"bufio"
	"context"
	"fmt"
	"slices"

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
	genericiooptions.IOStreams
	Style
	// Namespace is the requested namespace. Empty means all.
	Namespace string
	// SingleObject is set for a single named object.
	SingleObject bool
	// OmitEmptyMessage suppresses "No resources found".
	OmitEmptyMessage bool
}

// Sections writes all sections to stdout. For tables without objects it writes a message to stderr.
func Sections(ctx context.Context, sections []Section, options SectionOptions) error {
	p := &sectionPrinter{SectionOptions: options, ctx: ctx, out: bufio.NewWriterSize(options.Out, bufferSize)}
	var err error
	if options.Format.IsTable() {
		err = p.tables(sections)
	} else {
		err = p.list(sections)
	}
	// Also after an error, so that the last line is complete.
	if flushed := p.flush(); err == nil {
		err = flushed
	}
	return err
}

type sectionPrinter struct {
	SectionOptions
	ctx     context.Context
	out     *bufio.Writer
	printed int
}

func (p *sectionPrinter) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// list writes the objects of all types as one list.
func (p *sectionPrinter) list(sections []Section) error {
	framing := List
	if p.SingleObject {
		framing = SingleNamed
	}
	printer, err := New(p.Format, p.out, framing, p.NoHeaders)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := p.section(s, printer); err != nil {
			return err
		}
	}
	return printer.Close()
}

func (p *sectionPrinter) section(s Section, printer Printer) error {
	return s.Each(&Writer{sectionPrinter: p, resource: s.Resource, printer: printer})
}

// tables writes a table for each type with objects, separated by empty lines if the tables have headers. CSV
// is one table for all types, because readers expect one header.
func (p *sectionPrinter) tables(sections []Section) error {
	filled := slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return s.Empty })
	newTable := p.newTable
	if p.Format.Name == CSV {
		newTable = p.newCSV(filled, len(sections) > 1)
	}
	for i, s := range filled {
		if i > 0 && !p.NoHeaders && p.Format.Name != CSV {
			fmt.Fprintln(p.out) // bufio keeps the first error for flush
		}
		table := newTable(s.Resource, p.Rows(s.Rows), len(sections) > 1)
		if err := p.section(s, table); err != nil {
			return err
		}
		if err := table.Close(); err != nil {
			return err
		}
	}
	if p.printed == 0 && len(sections) > 0 && !p.OmitEmptyMessage {
		p.printEmpty(sections)
	}
	return nil
}

func (p *sectionPrinter) newTable(r discovery.Resource, rows RowFormatter, withKind bool) Printer {
	return NewTypeTable(p.out, rows, p.Table(r, p.Namespace, withKind))
}

// newCSV returns a constructor of printers that share one header.
func (p *sectionPrinter) newCSV(sections []Section, withKind bool) func(discovery.Resource, RowFormatter,
	bool) Printer {
	types := make([]csvResource, len(sections))
	withNamespace := false
	for i, s := range sections {
		types[i] = csvResource{Rows: p.Rows(s.Rows)}
		withNamespace = withNamespace || p.Table(s.Resource, p.Namespace, withKind).WithNamespace
	}
	table := newCSV(p.out, types, withNamespace, withKind || p.ShowKind, p.NoHeaders)
	return func(r discovery.Resource, rows RowFormatter, _ bool) Printer {
		return table.printerFor(csvResource{Rows: rows, Kind: r.GVK.GroupKind().String()})
	}
}

// printEmpty writes kubectl's message for no objects to stderr.
func (p *sectionPrinter) printEmpty(sections []Section) {
	for _, s := range sections {
		if p.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			fmt.Fprintf(p.ErrOut, "No resources found in %s namespace.\n", p.Namespace)
			return
		}
	}
	fmt.Fprintln(p.ErrOut, "No resources found")
}
