package print

import (
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// Printer prints objects in the order in which it gets them. Close ends the output, and makes it complete if nothing
// was printed.
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
