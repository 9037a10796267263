package print

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// namePrinter prints "kind.group/name" a line, as kubectl get -o name does. It reads nothing but keys and kinds.
type namePrinter struct{ w io.Writer }

// Print implements Printer.
func (p namePrinter) Print(o Object) error {
	_, err := fmt.Fprintf(p.w, "%s/%s\n", strings.ToLower(o.Kind.String()), o.Key[strings.LastIndexByte(o.Key, '/')+1:])
	return err
}

// Close implements Printer.
func (namePrinter) Close() error { return nil }

// jsonLinesPrinter prints each object as compact JSON on a line of its own.
type jsonLinesPrinter struct{ encoder *json.Encoder }

func newJSONLines(w io.Writer) *jsonLinesPrinter {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &jsonLinesPrinter{encoder}
}

// Print implements Printer.
func (p *jsonLinesPrinter) Print(o Object) error {
	object, err := o.decode()
	if err != nil {
		return err
	}
	if err := p.encoder.Encode(object.Object); err != nil {
		return fmt.Errorf("printing %s: %w", describe(object), err)
	}
	return nil
}

// Close implements Printer.
func (p *jsonLinesPrinter) Close() error { return nil }
