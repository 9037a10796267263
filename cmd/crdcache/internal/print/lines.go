package print

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namePrinter prints "kind.group/name" a line, as kubectl get -o name does.
type namePrinter struct{ w io.Writer }

// Print implements Printer.
func (p *namePrinter) Print(obj *unstructured.Unstructured) error {
	return p.PrintName(obj.GroupVersionKind().GroupKind(), obj.GetName())
}

// PrintName implements NamePrinter.
func (p *namePrinter) PrintName(kind schema.GroupKind, name string) error {
	_, err := fmt.Fprintf(p.w, "%s/%s\n", strings.ToLower(kind.String()), name)
	return err
}

// Close implements Printer.
func (p *namePrinter) Close() error { return nil }

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
