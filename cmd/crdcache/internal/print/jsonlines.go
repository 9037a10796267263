package print

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// jsonLinesPrinter prints each object as compact JSON on a line of its own.
type jsonLinesPrinter struct{ encoder *json.Encoder }

func newJSONLines(w io.Writer) *jsonLinesPrinter {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &jsonLinesPrinter{encoder}
}

// Print implements Printer.
func (p *jsonLinesPrinter) Print(obj *unstructured.Unstructured) error {
	if err := p.encoder.Encode(obj.Object); err != nil {
		return fmt.Errorf("printing %s: %w", describe(obj), err)
	}
	return nil
}

// Close implements Printer.
func (p *jsonLinesPrinter) Close() error { return nil }
