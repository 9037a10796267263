package print

import (
	"fmt"

	"github.com/crdcache/crdcache/discovery"
)

// Writer prints the objects of one section.
type Writer struct {
	*sectionPrinter
	of      discovery.Resource
	rows    Rows // nil for a list
	printer Printer
}

// Sort puts keys in the order in which the API server prints them.
func (w *Writer) Sort(keys []string) {
	if w.rows == nil {
		SortKeys(keys)
		return
	}
	w.rows.Sort(keys)
}

// KeysOnly reports whether keys are all that is printed of objects.
func (w *Writer) KeysOnly() bool { return w.Format.Name == Name }

// Err returns the error of the context of the command.
func (w *Writer) Err() error { return w.ctx.Err() }

// Print prints an object. It fails once the context of the command has ended.
func (w *Writer) Print(o Object) error {
	if err := w.Err(); err != nil {
		return err
	}
	w.printed++
	o.Kind = w.of.GVK.GroupKind()
	return w.printer.Print(o)
}

// Keys prints objects by their keys alone.
func (w *Writer) Keys(keys []string) error {
	for _, key := range keys {
		if err := w.Print(Object{Key: key}); err != nil {
			return err
		}
	}
	return nil
}

// flusher is a Printer that buffers objects to align their columns.
type flusher interface{ Flush() error }

// Flush writes the objects printed so far. Columns do not become narrower afterwards.
func (w *Writer) Flush() error {
	if printer, ok := w.printer.(flusher); ok {
		if err := printer.Flush(); err != nil {
			return fmt.Errorf("writing the output: %w", err)
		}
	}
	return w.flush()
}

// Reload replaces rows that came with the printed objects by those that the server prints now, if the columns are the
// same. The objects that follow have no rows of their own.
func (w *Writer) Reload() {
	came, ok := w.rows.(printedRows)
	if !ok {
		return
	}
	loaded := w.Loader.Load(w.ctx, []discovery.Resource{w.of})[0]
	if len(loaded.Definitions()) != len(came.definitions) {
		return
	}
	w.rows = loaded
	switch p := w.printer.(type) {
	case *TypeTable:
		p.rows = w.Rows(loaded)
	case *csvRows:
		p.Rows = w.Rows(loaded)
	}
}
