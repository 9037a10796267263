package dump

import (
	"bufio"
	"context"
	"fmt"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/cli/caches"
	"github.com/crdcache/crdcache/internal/cli/output"
	"github.com/crdcache/crdcache/internal/cli/tables"
)

// bufferSize is large enough that writing is no part of the cost.
const bufferSize = 1 << 16

// print writes everything that is cached to stdout.
func (o *options) print(ctx context.Context, loader *tables.Loader, types []caches.Cache) error {
	out := bufio.NewWriterSize(o.Out, bufferSize)
	var err error
	if o.format.IsTable() {
		err = o.printTables(ctx, loader, types, out)
	} else {
		err = o.printList(ctx, types, out)
	}
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// printList writes the objects of all types as one list.
func (o *options) printList(ctx context.Context, types []caches.Cache, out *bufio.Writer) error {
	printer, err := output.New(o.format, out, o.noHeaders)
	if err != nil {
		return err
	}
	for _, t := range types {
		if err := t.Print(ctx, output.SortKeys, printer); err != nil {
			return err
		}
	}
	return printer.Close()
}

// printTables writes a table for each type that has objects, with an empty line between two.
func (o *options) printTables(ctx context.Context, loader *tables.Loader, types []caches.Cache, out *bufio.Writer) error {
	var filled []caches.Cache
	for _, t := range types {
		if len(t.Informer.GetStore().ListKeys()) > 0 {
			filled = append(filled, t)
		}
	}
	if len(filled) == 0 && len(types) > 0 {
		o.sayEmpty(types)
	}
	resources := make([]discovery.Resource, len(filled))
	for i, t := range filled {
		resources[i] = t.Resource
	}
	rows := loader.Load(ctx, resources)
	for i, t := range filled {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := o.printTable(ctx, rows[i], t, len(types) > 1, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) printTable(ctx context.Context, rows output.Rows, t caches.Cache, withKind bool, out *bufio.Writer) error {
	table := o.newTable(rows, t, withKind, out)
	if err := t.Print(ctx, rows.Sort, table); err != nil {
		return err
	}
	return table.Close()
}

func (o *options) newTable(rows output.Rows, t caches.Cache, withKind bool, out *bufio.Writer) output.Printer {
	withNamespace := o.target.Namespace == "" && t.Resource.Scope == discovery.Namespaced
	if o.format.Name == output.CSV {
		return output.NewTypeCSV(out, rows, withNamespace, o.noHeaders)
	}
	return output.NewTypeTable(out, rows, printers.PrintOptions{
		NoHeaders:     o.noHeaders,
		WithNamespace: withNamespace,
		WithKind:      withKind,
		Kind:          t.Resource.GVK.GroupKind(),
		Wide:          o.format.Name == output.Wide,
	})
}

// sayEmpty tells on stderr, as kubectl does, that there is nothing.
func (o *options) sayEmpty(types []caches.Cache) {
	for _, t := range types {
		if o.target.Namespace != "" && t.Resource.Scope == discovery.Namespaced {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.target.Namespace)
			return
		}
	}
	fmt.Fprintln(o.ErrOut, "No resources found")
}
