package print

import (
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Printer prints objects in the order they come. Close ends the output, and makes it complete when there
// was nothing to print.
type Printer interface {
	Print(obj *unstructured.Unstructured) error
	Close() error
}

// RawPrinter is a Printer that can print an object from its JSON, which costs much less than decoding it.
type RawPrinter interface {
	Printer
	// PrintRaw prints raw, a valid JSON object, as Print prints what decoding it gives. It returns false, having
	// printed nothing, when raw has to be decoded.
	PrintRaw(raw []byte) (bool, error)
}

// NamePrinter is a Printer that looks at nothing but what objects are called.
type NamePrinter interface {
	Printer
	// PrintName prints what Print prints of an object of this kind and name.
	PrintName(kind schema.GroupKind, name string) error
}

// New returns the printer of a format that is no table of one type; a bad argument of the format is an error.
func New(format Format, w io.Writer, noHeaders bool) (Printer, error) {
	switch format.Name {
	case JSON:
		return &jsonPrinter{w: w}, nil
	case YAML:
		return &yamlPrinter{w: w}, nil
	case KYAML:
		return newListed(&kyamlPrinter{}, w), nil
	case Name:
		return &namePrinter{w: w}, nil
	case JSONLines:
		return newJSONLines(w), nil
	case CustomColumns:
		return newCustomColumns(format.Argument, w, noHeaders)
	case CustomColumnsFile:
		return newCustomColumnsFile(format.Argument, w, noHeaders)
	}
	return newTemplate(format, w)
}

// NewSingle is New for objects that are shown one by one as they come: templates see each object rather than a
// list, and end with a line break.
func NewSingle(format Format, w io.Writer, noHeaders bool) (Printer, error) {
	printer, err := New(format, w, noHeaders)
	if template, ok := printer.(*templatePrinter); ok {
		template.single, template.open = true, format.Name == KYAML // which has its own ends
	}
	return printer, err
}

// NewOne is New for one object that was asked for by its name: it is printed as it is, rather than as a list of one.
func NewOne(format Format, w io.Writer, noHeaders bool) (Printer, error) {
	switch format.Name {
	case JSON:
		return oneJSON{w}, nil
	case YAML:
		return oneYAML{w}, nil
	}
	printer, err := New(format, w, noHeaders)
	if template, ok := printer.(*templatePrinter); ok {
		template.single, template.open = true, true
	}
	return printer, err
}

// SortKeys orders keys ("namespace/name", or "name") as the API server lists objects: by the bytes of the
// whole key, which is not by namespace first ("a-b/x" comes before "a/x").
func SortKeys(keys []string) { slices.SortFunc(keys, strings.Compare) }
