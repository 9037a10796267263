package dump

import (
	"bufio"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/cli/output"
)

// bufferSize is large enough that writing is no part of the cost.
const bufferSize = 1 << 16

// transform is what objects go through on their way into the cache: managedFields are dropped unless they
// are to be printed.
func (o *options) transform() cache.TransformFunc {
	if o.showManagedFields {
		return nil
	}
	return dynamicinformer.StripManagedFields
}

// print writes everything that is cached to stdout.
func (o *options) print(ctx context.Context, client dynamic.Interface, types []cached) error {
	out := bufio.NewWriterSize(o.Out, bufferSize)
	var err error
	if o.format.IsTable() {
		err = o.printTables(ctx, client, types, out)
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
func (o *options) printList(ctx context.Context, types []cached, out *bufio.Writer) error {
	printer, err := output.New(o.format, out, o.noHeaders)
	if err != nil {
		return err
	}
	for _, t := range types {
		if _, err := each(ctx, t.informer, printer.Print); err != nil {
			return err
		}
	}
	return printer.Close()
}

// printTables writes a table for each type that has objects, with an empty line between two.
func (o *options) printTables(ctx context.Context, client dynamic.Interface, types []cached, out *bufio.Writer) error {
	var filled []cached
	for _, t := range types {
		if len(t.informer.GetStore().ListKeys()) > 0 {
			filled = append(filled, t)
		}
	}
	if len(filled) == 0 && len(types) > 0 {
		o.sayEmpty(types)
	}
	columns := o.columns(ctx, client, filled)
	for i, t := range filled {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := o.printTable(ctx, columns[i], t, len(types) > 1, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) printTable(ctx context.Context, columns []crd.Column, t cached, withKind bool, out *bufio.Writer) error {
	table := o.newTable(columns, t, withKind, out)
	if _, err := each(ctx, t.informer, table.Print); err != nil {
		return err
	}
	return table.Close()
}

func (o *options) newTable(columns []crd.Column, t cached, withKind bool, out *bufio.Writer) output.Printer {
	withNamespace := o.target.Namespace == "" && t.resource.Scope == discovery.Namespaced
	if o.format.Name == output.CSV {
		return output.NewTypeCSV(out, columns, withNamespace, o.noHeaders)
	}
	return output.NewTypeTable(out, columns, printers.PrintOptions{
		NoHeaders:     o.noHeaders,
		WithNamespace: withNamespace,
		WithKind:      withKind,
		Kind:          t.resource.GVK.GroupKind(),
		Wide:          o.format.Name == output.Wide,
	})
}

// sayEmpty tells on stderr, as kubectl does, that there is nothing.
func (o *options) sayEmpty(types []cached) {
	for _, t := range types {
		if o.target.Namespace != "" && t.resource.Scope == discovery.Namespaced {
			fmt.Fprintf(o.ErrOut, "No resources found in %s namespace.\n", o.target.Namespace)
			return
		}
	}
	fmt.Fprintln(o.ErrOut, "No resources found")
}

// each calls f for every cached object in the order of the API server, and counts them.
func each(ctx context.Context, i *dynamicinformer.Informer, f func(*unstructured.Unstructured) error) (int, error) {
	store := i.GetStore()
	keys := store.ListKeys()
	output.SortKeys(keys)
	printed := 0
	for _, key := range keys {
		if ctx.Err() != nil {
			return printed, ctx.Err()
		}
		obj, exists, err := store.GetByKey(key)
		if err != nil {
			return printed, err
		}
		u, ok := obj.(*unstructured.Unstructured)
		if !exists || !ok {
			continue // deleted since
		}
		if err := f(u); err != nil {
			return printed, err
		}
		printed++
	}
	return printed, nil
}
