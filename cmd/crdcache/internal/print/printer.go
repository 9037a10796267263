package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/jsontext"
)

// Object is an object to print, as JSON or decoded.
type Object struct {
	// Key is "namespace/name", or "name".
	Key  string
	Kind schema.GroupKind
	// JSON is valid until the printer returns.
	JSON []byte
	// Decoded is shared and read-only. It takes precedence over JSON.
	Decoded *unstructured.Unstructured
}

// Decoded returns an Object for a decoded object.
func Decoded(object *unstructured.Unstructured) Object {
	return Object{Key: keyOf(object), Kind: object.GroupVersionKind().GroupKind(), Decoded: object}
}

func keyOf(object *unstructured.Unstructured) string { return cache.MetaObjectToName(object).String() }

// decoder shares common strings between objects.
var decoder = jsontext.NewDecoder()

// decode returns the decoded object, which is read-only.
func (o Object) decode() (*unstructured.Unstructured, error) {
	if o.Decoded != nil {
		return o.Decoded, nil
	}
	content, err := decoder.Decode(o.JSON)
	return &unstructured.Unstructured{Object: content}, err
}

// Printer prints objects. Close completes the output, which is valid without any object.
type Printer interface {
	Print(o Object) error
	Close() error
}

// Framing selects the text around the printed objects.
type Framing int

const (
	// List prints all objects as one v1 List.
	List Framing = iota
	// EachSeparately prints each object separately. Templates are evaluated on each object, followed by a
	// line break.
	EachSeparately
	// SingleNamed prints a single named object. Templates are not followed by a line break.
	SingleNamed
)

// New returns the printer of a format other than a table. It returns an error for an invalid argument of the
// format.
func New(format Format, w io.Writer, framing Framing, noHeaders bool) (Printer, error) {
	switch format.Name {
	case JSON:
		return &jsonPrinter{w: w, single: framing != List}, nil
	case YAML:
		return &yamlPrinter{w: w, single: framing != List, quotes: quoteCache{}}, nil
	case Name:
		return namePrinter{w}, nil
	case JSONLines:
		return newJSONLines(w), nil
	case CustomColumns:
		return newCustomColumns(format.Argument, w, noHeaders)
	case CustomColumnsFile:
		return newCustomColumnsFile(format.Argument, w, noHeaders)
	}
	return newTemplate(format, w, framing)
}

// SortKeys sorts keys in the order of the API server's lists: by the bytes of the whole key. So "a-b/x" comes
// before "a/x".
func SortKeys(keys []string) { slices.SortFunc(keys, strings.Compare) }

// Writer prints the objects of one section.
type Writer struct {
	*sectionPrinter
	resource discovery.Resource
	printer  Printer
}

// KeysOnly reports whether the format needs only keys.
func (w *Writer) KeysOnly() bool { return w.Format.Name == Name }

// Err returns the error of the command's context.
func (w *Writer) Err() error { return w.ctx.Err() }

// Print prints an object. It fails after the command's context has ended.
func (w *Writer) Print(o Object) error {
	if err := w.Err(); err != nil {
		return err
	}
	w.printed++
	o.Kind = w.resource.GVK.GroupKind()
	return w.printer.Print(o)
}

// Keys prints objects that are needed only by key.
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
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return w.flush()
}
