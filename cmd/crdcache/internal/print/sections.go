package print

import (
	"bufio"
	"context"
	"fmt"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/discovery"
)

// bufferSize is large enough that writing is no part of the cost.
const bufferSize = 1 << 16

// Section is the objects of one type.
type Section struct {
	Resource discovery.Resource
	// Empty says that there are no objects, where that is known before they are read.
	Empty bool
	// Rows are what a table shows; nil: what the Loader finds.
	Rows Rows
	// Each passes the objects to the writer, in the order of Writer.Sort where it has no order of its own.
	Each func(w *Writer) error
}

// SectionOptions say how sections are printed.
type SectionOptions struct {
	genericiooptions.IOStreams
	Style
	// Namespace is the requested namespace; empty for all.
	Namespace string
	// Loader finds the columns of tables.
	Loader *RowLoader
	// One says that there is one object, which was requested by its name.
	One bool
	// Silent suppresses the notice that there are no objects.
	Silent bool
}

// Sections writes all sections to stdout. Without objects it writes a notice to stderr, unless a list shows
// that.
func Sections(ctx context.Context, sections []Section, options SectionOptions) error {
	p := &sectionPrinter{SectionOptions: options, ctx: ctx, out: bufio.NewWriterSize(options.Out, bufferSize)}
	var err error
	if options.Format.IsTable() {
		err = p.tables(sections)
	} else {
		err = p.list(sections)
	}
	// Also before an error: no line shall end in the middle.
	if flushed := p.flush(); err == nil {
		err = flushed
	}
	return err
}

// sectionPrinter prints the sections of one command.
type sectionPrinter struct {
	SectionOptions
	ctx     context.Context
	out     *bufio.Writer
	printed int
}

func (p *sectionPrinter) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// list writes the objects of all types as one list.
func (p *sectionPrinter) list(sections []Section) error {
	form := List
	if p.One {
		form = One
	}
	printer, err := New(p.Format, p.out, form, p.NoHeaders)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := p.section(s, nil, printer); err != nil {
			return err
		}
	}
	return printer.Close()
}

func (p *sectionPrinter) section(s Section, rows Rows, printer Printer) error {
	return s.Each(&Writer{sectionPrinter: p, of: s.Resource, rows: rows, printer: printer})
}

// tables writes a table for each type that has objects, with an empty line between two that have headers. CSV
// is one table of all types, because its readers expect one header.
func (p *sectionPrinter) tables(sections []Section) error {
	filled := slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return s.Empty })
	rows, newTable := p.load(filled), p.newTable
	if p.Format.Name == CSV {
		newTable = p.newCSV(filled, rows, len(sections) > 1)
	}
	for i, s := range filled {
		if i > 0 && !p.NoHeaders && p.Format.Name != CSV {
			fmt.Fprintln(p.out) // bufio keeps the first error for flush
		}
		table := newTable(s.Resource, p.Rows(rows[i]), len(sections) > 1)
		if err := p.section(s, rows[i], table); err != nil {
			return err
		}
		if err := table.Close(); err != nil {
			return err
		}
	}
	if p.printed == 0 && len(sections) > 0 && !p.Silent {
		p.sayEmpty(sections)
	}
	return nil
}

// load returns the rows of each section.
func (p *sectionPrinter) load(sections []Section) []Rows {
	var missing []discovery.Resource
	for _, s := range sections {
		if s.Rows == nil {
			missing = append(missing, s.Resource)
		}
	}
	loaded, all := p.Loader.Load(p.ctx, missing), make([]Rows, len(sections))
	for i, s := range sections {
		if all[i] = s.Rows; s.Rows == nil {
			all[i], loaded = loaded[0], loaded[1:]
		}
	}
	return all
}

func (p *sectionPrinter) newTable(r discovery.Resource, rows Rows, withKind bool) Printer {
	return NewTypeTable(p.out, rows, p.Table(r, p.Namespace, withKind))
}

// newCSV returns the func that makes the printers of types with a common header.
func (p *sectionPrinter) newCSV(sections []Section, rows []Rows, withKind bool) func(discovery.Resource, Rows,
	bool) Printer {
	types := make([]csvType, len(sections))
	withNamespace := false
	for i, s := range sections {
		types[i] = csvType{Rows: p.Rows(rows[i])}
		withNamespace = withNamespace || p.Table(s.Resource, p.Namespace, withKind).WithNamespace
	}
	table := newCSV(p.out, types, withNamespace, withKind || p.ShowKind, p.NoHeaders)
	return func(r discovery.Resource, rows Rows, _ bool) Printer {
		return table.of(csvType{Rows: rows, Kind: r.GVK.GroupKind().String()})
	}
}

// sayEmpty writes to stderr, as kubectl does, that there are no objects.
func (p *sectionPrinter) sayEmpty(sections []Section) {
	for _, s := range sections {
		if p.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			fmt.Fprintf(p.ErrOut, "No resources found in %s namespace.\n", p.Namespace)
			return
		}
	}
	fmt.Fprintln(p.ErrOut, "No resources found")
}
