// Package show prints the objects of types in the format that was asked for: lists of all of them, or a table for
// each type.
package show

import (
	"bufio"
	"context"
	"fmt"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli/tables"
	"github.com/crdcache/crdcache/discovery"
)

// bufferSize is large enough that writing is no part of the cost.
const bufferSize = 1 << 16

// Section is what is shown of one type.
type Section struct {
	Resource discovery.Resource
	// Len counts the objects.
	Len int
	// Print prints them. Where their order is open it is that in which sort puts their keys.
	Print func(ctx context.Context, sort func(keys []string), printer output.Printer) error
}

// Options say how.
type Options struct {
	genericiooptions.IOStreams
	Style
	// Namespace is the one that was asked for; empty for all.
	Namespace string
	// Loader finds the columns of tables.
	Loader *tables.Loader
}

// Print writes all sections to stdout. Of none it says on stderr that there is nothing, unless a list says so.
func Print(ctx context.Context, sections []Section, options Options) error {
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
func (o Options) printList(ctx context.Context, sections []Section, out *bufio.Writer) error {
	printer, err := output.New(o.Format, out, o.NoHeaders)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := s.Print(ctx, output.SortKeys, printer); err != nil {
			return err
		}
	}
	return printer.Close()
}

// printTables writes a table for each type that has objects, with an empty line between two that have headers.
func (o Options) printTables(ctx context.Context, sections []Section, out *bufio.Writer) error {
	var filled []Section
	var resources []discovery.Resource
	for _, s := range sections {
		if s.Len > 0 {
			filled, resources = append(filled, s), append(resources, s.Resource)
		}
	}
	if len(filled) == 0 && len(sections) > 0 {
		o.sayEmpty(sections)
	}
	rows := o.Loader.Load(ctx, resources)
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

func (o Options) newTable(rows output.Rows, s Section, withKind bool, out *bufio.Writer) output.Printer {
	rows = o.Rows(rows)
	table := o.Table(s.Resource, o.Namespace, withKind)
	if o.Format.Name == output.CSV {
		return output.NewTypeCSV(out, rows, table.WithNamespace, o.NoHeaders)
	}
	return output.NewTypeTable(out, rows, table)
}

// sayEmpty tells on stderr, as kubectl does, that there is nothing.
func (o Options) sayEmpty(sections []Section) {
	for _, s := range sections {
		if o.Namespace != "" && s.Resource.Scope == discovery.Namespaced {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.Namespace)
			return
		}
	}
	fmt.Fprintln(o.ErrOut, "No resources found")
}
