package print

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// jsonPrinter prints a v1 List, byte for byte as kubectl get -o json does.
type jsonPrinter struct {
	w       io.Writer
	printed bool
	buffer  []byte
}

var _ RawPrinter = (*jsonPrinter)(nil)

const (
	jsonHead  = "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
	jsonTail  = "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	jsonStep  = "    "
	jsonInset = jsonStep + jsonStep
)

// Print implements Printer.
func (p *jsonPrinter) Print(obj *unstructured.Unstructured) error {
	text, err := json.MarshalIndent(obj.Object, jsonInset, jsonStep)
	if err != nil {
		return fmt.Errorf("printing %s: %w", describe(obj), err)
	}
	return p.write(text)
}

// PrintRaw implements RawPrinter.
func (p *jsonPrinter) PrintRaw(raw []byte) (bool, error) {
	text, ok := appendIndented(p.buffer[:0], raw, jsonInset, jsonStep)
	if !ok {
		return false, nil
	}
	p.buffer = text
	return true, p.write(text)
}

// write prints an object that has its form already.
func (p *jsonPrinter) write(text []byte) error {
	separator := ",\n" + jsonInset
	if !p.printed {
		separator = jsonHead + "\n" + jsonInset
		p.printed = true
	}
	if _, err := io.WriteString(p.w, separator); err != nil {
		return err
	}
	_, err := p.w.Write(text)
	return err
}

// Close implements Printer.
func (p *jsonPrinter) Close() error {
	end := "\n" + jsonStep + jsonTail
	if !p.printed {
		end = jsonHead + jsonTail
	}
	_, err := io.WriteString(p.w, end)
	return err
}

// oneJSON prints an object alone, as kubectl get -o json does of one that is named.
type oneJSON struct{ w io.Writer }

// Print implements Printer.
func (p oneJSON) Print(obj *unstructured.Unstructured) error {
	text, err := json.MarshalIndent(obj.Object, "", jsonStep)
	if err != nil {
		return fmt.Errorf("printing %s: %w", describe(obj), err)
	}
	_, err = p.w.Write(append(text, '\n'))
	return err
}

// Close implements Printer.
func (oneJSON) Close() error { return nil }

// describe names an object in an error.
func describe(obj *unstructured.Unstructured) string {
	if obj.GetNamespace() == "" {
		return obj.GetKind() + " " + obj.GetName()
	}
	return obj.GetKind() + " " + obj.GetNamespace() + "/" + obj.GetName()
}
