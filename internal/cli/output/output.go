package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Printer prints objects in the order they come. Close ends the output, and makes it complete when there
// was nothing to print.
type Printer interface {
	Print(obj *unstructured.Unstructured) error
	Close() error
}

// The formats that New knows.
const (
	JSON = "json"
	YAML = "yaml"
	Name = "name"
)

// New returns the printer of a format that needs no more than the objects.
func New(format string, w io.Writer) (Printer, error) {
	switch format {
	case JSON:
		return &jsonPrinter{w: w}, nil
	case YAML:
		return &yamlPrinter{w: w}, nil
	case Name:
		return &namePrinter{w: w}, nil
	}
	return nil, fmt.Errorf("there is no output format %q", format)
}

// SortKeys orders keys ("namespace/name", or "name") as the API server lists objects: by the bytes of the
// whole key, which is not by namespace first ("a-b/x" comes before "a/x").
func SortKeys(keys []string) { slices.SortFunc(keys, strings.Compare) }
