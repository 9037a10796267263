package print

import (
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// yamlPrinter prints a v1 List, byte for byte as kubectl get -o yaml does.
type yamlPrinter struct {
	w       io.Writer
	printed bool
	buffer  []byte
	quotes  quotes
}

var _ RawPrinter = (*yamlPrinter)(nil)

const (
	yamlHead  = "apiVersion: v1\nitems:\n"
	yamlEmpty = "apiVersion: v1\nitems: []\n"
	yamlTail  = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
)

// Print implements Printer.
func (p *yamlPrinter) Print(obj *unstructured.Unstructured) error {
	// As a sequence of one it comes out as it stands in the list, line breaks included.
	text, err := MarshalYAML([]any{obj.Object})
	if err != nil {
		return fmt.Errorf("printing %s: %w", describe(obj), err)
	}
	return p.write(text)
}

// PrintRaw implements RawPrinter.
func (p *yamlPrinter) PrintRaw(raw []byte) (bool, error) {
	if p.quotes == nil {
		p.quotes = quotes{}
	}
	text, ok := appendYAMLItem(p.buffer[:0], raw, p.quotes)
	if !ok {
		return false, nil
	}
	p.buffer = text
	return true, p.write(text)
}

// write prints an item that has its form already.
func (p *yamlPrinter) write(text []byte) error {
	if !p.printed {
		p.printed = true
		if _, err := io.WriteString(p.w, yamlHead); err != nil {
			return err
		}
	}
	_, err := p.w.Write(text)
	return err
}

// Close implements Printer.
func (p *yamlPrinter) Close() error {
	end := yamlTail
	if !p.printed {
		end = yamlEmpty + yamlTail
	}
	_, err := io.WriteString(p.w, end)
	return err
}

// oneYAML prints an object alone, as kubectl get -o yaml does of one that is named.
type oneYAML struct{ w io.Writer }

// Print implements Printer.
func (p oneYAML) Print(obj *unstructured.Unstructured) error {
	text, err := MarshalYAML(obj.Object)
	if err != nil {
		return fmt.Errorf("printing %s: %w", describe(obj), err)
	}
	_, err = p.w.Write(text)
	return err
}

// Close implements Printer.
func (oneYAML) Close() error { return nil }

// MarshalYAML is yaml.Marshal, which fails for some of what objects can hold: it takes YAML for JSON, and has some
// characters mean something, or nothing, that are letters to JSON. Those come out as escapes then. Nor does YAML read keys of
// more than 1024 characters where JSON has them; with those, the object is written without a detour over JSON.
func MarshalYAML(value any) ([]byte, error) {
	text, err := yaml.Marshal(value)
	if err == nil {
		return text, nil
	}
	plain, failed := json.Marshal(value)
	if failed != nil {
		return nil, failed
	}
	if text, err = yaml.JSONToYAML(escapeUnprintable(plain)); err == nil {
		return text, nil
	}
	var decoded any
	if err := utiljson.Unmarshal(plain, &decoded); err != nil {
		return nil, err
	}
	return goyaml.Marshal(decoded)
}

// escapeUnprintable escapes characters of JSON that YAML reads in another way. In JSON they only stand in strings.
func escapeUnprintable(text []byte) []byte {
	var out []byte
	for _, r := range string(text) {
		if 0x7f <= r && r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
