package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
	"sigs.k8s.io/yaml/kyaml"
)

// yamlPrinter prints a v1 List, or a document for each object, byte for byte as kubectl get -o yaml does.
type yamlPrinter struct {
	w       io.Writer
	single  bool
	printed bool
	buffer  []byte
	quotes  quoteCache
}

const (
	yamlHead  = "apiVersion: v1\nitems:\n"
	yamlEmpty = "apiVersion: v1\nitems: []\n"
	yamlTail  = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	yamlNext  = "---\n"
)

func (p *yamlPrinter) Print(o Object) error {
	text, ok := append(p.buffer[:0], p.separator()...), false
	if !p.single {
		text, ok = appendYAMLItem(text, o.JSON, p.quotes)
	}
	if !ok {
		object, err := o.decode()
		if err != nil {
			return err
		}
		marshalled, err := p.marshal(object.Object)
		if err != nil {
			return fmt.Errorf("print %s: %w", describeObject(object), err)
		}
		text = append(text, marshalled...)
	}
	p.buffer, p.printed = text, true
	_, err := p.w.Write(text)
	return err
}

// marshal returns an object as a document or as a list item. A sequence of one item has the line breaks of a
// list.
func (p *yamlPrinter) marshal(object map[string]any) ([]byte, error) {
	if p.single {
		return MarshalYAML(object)
	}
	return MarshalYAML([]any{object})
}

// separator returns the text before the next object.
func (p *yamlPrinter) separator() string {
	switch {
	case p.single && p.printed:
		return yamlNext
	case p.single || p.printed:
		return ""
	}
	return yamlHead
}

func (p *yamlPrinter) Close() error {
	end := yamlTail
	switch {
	case p.single:
		return nil
	case !p.printed:
		end = yamlEmpty + yamlTail
	}
	_, err := io.WriteString(p.w, end)
	return err
}

// MarshalYAML is yaml.Marshal for all objects. yaml.Marshal parses JSON as YAML and fails for some characters
// and for keys of more than 1024 characters. MarshalYAML escapes these characters and does not convert long
// keys through JSON.
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

// escapeUnprintable escapes characters that YAML reads differently from JSON. In JSON they occur only in
// strings.
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

// kyamlPrinter is cli-runtime's KYAML printer with the same workaround.
type kyamlPrinter struct{ printers.KYAMLPrinter }

func (p *kyamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	var text bytes.Buffer
	if err := p.KYAMLPrinter.PrintObj(object, &text); err != nil {
		plain, failed := json.Marshal(object)
		if failed != nil {
			return failed
		}
		text.Reset()
		encoder := kyaml.Encoder{}
		if failed := encoder.FromYAML(bytes.NewReader(escapeUnprintable(plain)), &text); failed != nil {
			return err
		}
	}
	_, err := text.WriteTo(w)
	return err
}
