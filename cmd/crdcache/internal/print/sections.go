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

// Section is what is shown of one type.
type Section struct {
	Resource discovery.Resource
	// Len counts the objects.
	Len int
	// Rows are what a table shows; nil: what the Loader finds.
	Rows Rows
	// Print prints them. Where their order is open it is that in which sort puts their keys.
	Print func(ctx context.Context, sort func(keys []string), printer Printer) error
}

// SectionOptions say how.
type SectionOptions struct {
	genericiooptions.IOStreams
	Style
	// Namespace is the one that was asked for; empty for all.
	Namespace string
	// Loader finds the columns of tables.
	Loader *RowLoader
	// One says that there is one object, which was asked for by its name.
	One bool
	// Silent leaves out that there is nothing.
	Silent bool
}

// Sections writes all sections to stdout. Of none it says on stderr that there is nothing, unless a list says so.
func Sections(ctx context.Context, sections []Section, options SectionOptions) error {
	out := bufio.NewWriterSize(options.Out, bufferSize)
	var err error
	if options.Format.IsTable() {
		err = options.printTables(ctx, sections, out)
	} else {
		err = options.printList(ctx, sections, out)
	}
	// Also before an error: no line shall end in the middle.
	if flushed := out.Flush(); flushed != nil && err == nil {
		err = fmt.Errorf("writing the output: %w", flushed)
	}
	return err
}

// printList writes the objects of all types as one list.
func (o SectionOptions) printList(ctx context.Context, sections []Section, out *bufio.Writer) error {
	newPrinter := New
	if o.One {
		newPrinter = NewOne
	}
	printer, err := newPrinter(o.Format, out, o.NoHeaders)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := s.Print(ctx, SortKeys, printer); err != nil {
			return err
		}
	}
	return printer.Close()
}

// printTables writes a table for each type that has objects, with an empty line between two that have headers.
func (o SectionOptions) printTables(ctx context.Context, sections []Section, out *bufio.Writer) error {
	filled := slices.DeleteFunc(slices.Clone(sections), func(s Section) bool { return s.Len == 0 })
	if len(filled) == 0 && len(sections) > 0 && !o.Silent {
		o.sayEmpty(sections)
	}
	rows := o.load(ctx, filled)
	if o.Format.Name == CSV {
		return o.printCSV(ctx, filled, rows, len(sections) > 1, out)
	}
	for i, s := range filled {
		if i > 0 && !o.NoHeaders {
			fmt.Fprintln(out)
		}
		table := o.newTable(rows[i], s, len(sections) > 1, out)
		if err := s.Print(ctx, rows[i].Sort, table); err != nil {
			return err
		}
		if err := table.Close(); err != nil {
			return err
		}
	}
	return nil
}

// load returns the rows of each section.
func (o SectionOptions) load(ctx context.Context, sections []Section) []Rows {
	var missing []discovery.Resource
	for _, s := range sections {
		if s.Rows == nil {
			missing = append(missing, s.Resource)
		}
	}
	loaded, all := o.Loader.Load(ctx, missing), make([]Rows, len(sections))
	for i, s := range sections {
		if all[i] = s.Rows; s.Rows == nil {
			all[i], loaded = loaded[0], loaded[1:]
		}
	}
	return all
}

func (o SectionOptions) newTable(rows Rows, s Section, withKind bool, out *bufio.Writer) Printer {
	return NewTypeTable(out, o.Rows(rows), o.Table(s.Resource, o.Namespace, withKind))
}

// printCSV writes one table of all types: what reads it reads one header.
func (o SectionOptions) printCSV(ctx context.Context, sections []Section, rows []Rows, withKind bool, out *bufio.Writer) error {
	types := make([]csvType, len(sections))
	withNamespace := false
	for i, s := range sections {
		types[i] = csvType{Rows: o.Rows(rows[i]), Kind: s.Resource.GVK.GroupKind().String()}
		withNamespace = withNamespace || o.Table(s.Resource, o.Namespace, withKind).WithNamespace
	}
	table := newCSV(out, types, withNamespace, withKind || o.ShowKind, o.NoHeaders)
	for i, s := range sections {
		printer := table.of(types[i])
		if err := s.Print(ctx, rows[i].Sort, printer); err != nil {
			return err
		}
		if err := printer.Close(); err != nil {
			return err
		}
	}
	return nil
}

// sayEmpty tells on stderr, as kubectl does, that there is nothing.
func (o SectionOptions) sayEmpty(sections []Section) {
	for _, s := range sections {
		if o.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.Namespace)
			return
		}
	}
	fmt.Fprintln(o.ErrOut, "No resources found")
}
