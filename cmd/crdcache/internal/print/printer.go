package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// Object is an object to print, with its JSON or decoded.
type Object struct {
	// Key is "namespace/name", or "name".
	Key  string
	Kind schema.GroupKind
	// JSON is valid until the printer returns.
	JSON []byte
	// Decoded is shared and read-only. It takes precedence over JSON.
	Decoded *unstructured.Unstructured
}

// Decoded returns an object that is decoded already.
func Decoded(object *unstructured.Unstructured) Object {
	return Object{Key: keyOf(object), Kind: object.GroupVersionKind().GroupKind(), Decoded: object}
}

func keyOf(object *unstructured.Unstructured) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// decoder remembers the strings that objects have in common.
var decoder = jsontext.NewDecoder()

// decode returns the decoded object, which is read-only.
func (o Object) decode() (*unstructured.Unstructured, error) {
	if o.Decoded != nil {
		return o.Decoded, nil
	}
	content, err := decoder.Decode(o.JSON)
	return &unstructured.Unstructured{Object: content}, err
}

// Printer prints objects in the order in which it gets them. Close ends the output, and makes it complete if
// nothing was printed.
type Printer interface {
	Print(o Object) error
	Close() error
}

// Form says what surrounds the printed objects.
type Form int

const (
	// List prints all objects as one v1 List.
	List Form = iota
	// Single prints each object by itself. Templates see the object, and end with a line break.
	Single
	// One prints the only object, which was requested by its name. Templates end without a line break.
	One
)

// New returns the printer of a format other than a table. An invalid argument of the format is an error.
func New(format Format, w io.Writer, form Form, noHeaders bool) (Printer, error) {
	switch format.Name {
	case JSON:
		return &jsonPrinter{w: w, alone: form != List}, nil
	case YAML:
		return &yamlPrinter{w: w, alone: form != List, quotes: quotes{}}, nil
	case Name:
		return namePrinter{w}, nil
	case JSONLines:
		return newJSONLines(w), nil
	case CustomColumns:
		return newCustomColumns(format.Argument, w, noHeaders)
	case CustomColumnsFile:
		return newCustomColumnsFile(format.Argument, w, noHeaders)
	}
	return newTemplate(format, w, form)
}

// SortKeys orders keys ("namespace/name", or "name") as the API server lists objects: by the bytes of the
// whole key, which is not by namespace first ("a-b/x" comes before "a/x").
func SortKeys(keys []string) { slices.SortFunc(keys, strings.Compare) }

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

// Reload replaces rows that came with the printed objects by those that the server prints now, if the columns
// are the same. The objects that follow have no rows of their own.
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
