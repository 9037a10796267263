package print

import (
	"bufio"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery"
)

// flusher is a Printer that keeps what it has printed until there is more, or the end.
type flusher interface{ Flush() error }

// Flow prints the objects of one type as they come, in a format that flows. Of few objects it prints what Sections
// prints; the columns of more are as wide as what has come needs them to be.
type Flow struct {
	options  SectionOptions
	resource discovery.Resource
	rows     Rows // nil for what is no table
	out      *bufio.Writer
	printer  Printer
	// Chosen, if set, says which objects are printed.
	Chosen func(*unstructured.Unstructured) bool

	came, printed int
	last          string // the greatest key of what came
	// unordered says that the pages did not come in the order of keys.
	unordered bool
}

// Flow returns the Flow of a type. The rows are for tables.
func (o SectionOptions) Flow(r discovery.Resource, rows Rows) (*Flow, error) {
	f := &Flow{options: o, resource: r, rows: rows, out: bufio.NewWriterSize(o.Out, bufferSize)}
	table := o.Table(r, o.Namespace, false)
	var err error
	switch {
	case !o.Format.IsTable():
		f.printer, err = New(o.Format, f.out, o.NoHeaders)
	case o.Format.Name == CSV:
		one := csvType{Rows: o.Rows(rows), Kind: r.GVK.GroupKind().String()}
		f.printer = newCSV(f.out, []csvType{one}, table.WithNamespace, o.ShowKind, o.NoHeaders).of(one)
	default:
		f.printer = NewTypeTable(f.out, o.Rows(rows), table)
	}
	return f, err
}

// Page prints objects, and returns when they are written. The server may print those of one page in an order of its own.
func (f *Flow) Page(objects []unstructured.Unstructured) error {
	before := f.last
	for i := range objects {
		key := keyOf(&objects[i])
		f.unordered = f.unordered || f.came > 0 && key <= before
		f.last = max(f.last, key)
		if err := f.print(&objects[i]); err != nil {
			return err
		}
	}
	f.came += len(objects)
	return f.flush()
}

func (f *Flow) print(object *unstructured.Unstructured) error {
	if f.Chosen != nil && !f.Chosen(object) {
		return nil
	}
	f.printed++
	return f.printer.Print(object)
}

// Last is the key ("namespace/name", or "name") after which nothing has come yet; false where the server lists in
// another order than that of keys, which tells no such key.
func (f *Flow) Last() (string, bool) { return f.last, !f.unordered }

// Rest prints what a section has after Last.
func (f *Flow) Rest(ctx context.Context, s Section) error {
	sort := SortKeys
	if rows, ok := f.rows.(printedRows); ok { // which the objects of the section do not bring
		loaded := f.options.Loader.Load(ctx, []discovery.Resource{f.resource})[0]
		if len(loaded.Definitions()) == len(rows.definitions) {
			f.show(loaded)
			sort = loaded.Sort
		}
	}
	return s.Print(ctx, sort, &after{f.printer, f, f.last})
}

// show changes the rows of a table for others with the same columns.
func (f *Flow) show(rows Rows) {
	f.rows = rows
	switch p := f.printer.(type) {
	case *TypeTable:
		p.rows = f.options.Rows(rows)
	case *csvRows:
		p.Rows = f.options.Rows(rows)
	}
}

// Close ends the output. Of nothing it says on stderr that there is nothing, as Sections does.
func (f *Flow) Close() error {
	if f.printed == 0 && f.options.Format.IsTable() && !f.options.Silent {
		f.options.sayEmpty([]Section{{Resource: f.resource}})
	}
	if err := f.printer.Close(); err != nil {
		return err
	}
	return f.flush()
}

func (f *Flow) flush() error {
	if printer, ok := f.printer.(flusher); ok {
		if err := printer.Flush(); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	if err := f.out.Flush(); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// after passes on the objects whose keys come after last.
type after struct {
	Printer
	flow *Flow
	last string
}

// Print implements Printer.
func (a *after) Print(object *unstructured.Unstructured) error {
	if keyOf(object) <= a.last {
		return nil
	}
	return a.flow.print(object)
}

// keyOf is the key of an object.
func keyOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}
