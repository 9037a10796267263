package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
	"sigs.k8s.io/yaml/kyaml"

	"github.com/crdcache/crdcache/internal/naming"
)

const (
	yamlListStart         = "apiVersion: v1\nitems:\n"
	yamlEmptyListStart    = "apiVersion: v1\nitems: []\n"
	yamlListEnd           = "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
	yamlDocumentSeparator = "---\n"
)

// newYAMLPrinter prints a v1 List, or a document for each object.
func newYAMLPrinter(w io.Writer, framing Framing) *textPrinter {
	p, quotes := &textPrinter{w: w, nextPrefix: yamlDocumentSeparator}, quoteCache{}
	if framing == List {
		p.prefix, p.nextPrefix = yamlListStart, ""
		p.suffix, p.lastSuffix = yamlEmptyListStart+yamlListEnd, yamlListEnd
	}
	p.appendObject = func(text []byte, o Object) ([]byte, error) {
		object, err := o.decode()
		if err != nil {
			return nil, err
		}
		var value any = object.Object
		if framing == List {
			if item, ok := appendYAMLItem(text, value, quotes); ok {
				return item, nil
			}
			value = []any{value} // a sequence of one item has the line breaks of a list
		}
		marshalled, err := marshalDecoded(value)
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", describeObject(object), err)
		}
		return append(text, marshalled...), nil
	}
	return p
}

// MarshalYAML is yaml.Marshal of sigs.k8s.io/yaml without its errors for some characters and long keys.
func MarshalYAML(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var decoded any
	if err := utiljson.Unmarshal(text, &decoded); err != nil {
		return nil, err
	}
	return marshalDecoded(decoded)
}

// marshalDecoded is yaml.Marshal of sigs.k8s.io/yaml for decoded JSON. yaml.Marshal reads JSON as YAML, which
// is slow and fails for some characters and for keys of more than 1024 characters.
func marshalDecoded(value any) ([]byte, error) {
	var c yamlConverter
	converted := c.convert(value)
	if c.hasLineBreaks {
		if text, err := yaml.Marshal(value); err == nil {
			return text, nil
		}
	}
	return goyaml.Marshal(converted)
}

// yamlConverter converts decoded JSON values to the values that YAML reads from their JSON.
type yamlConverter struct {
	// hasLineBreaks is set after a text with line breaks that only YAML knows. YAML reads them as spaces.
	hasLineBreaks bool
}

// convert returns a copy in which numbers without a fraction are integers, and invalid UTF-8 is replaced.
func (c *yamlConverter) convert(value any) any {
	switch v := value.(type) {
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			return n
		}
	case string:
		return c.convertText(v)
	case []any:
		return naming.Map(v, c.convert)
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, element := range v {
			object[c.convertText(key)] = c.convert(element)
		}
		return object
	}
	return value
}

func (c *yamlConverter) convertText(convertText string) string {
	c.hasLineBreaks = c.hasLineBreaks || strings.ContainsAny(convertText, "\u0085\u2028\u2029")
	if utf8.ValidString(convertText) {
		return convertText
	}
	return string([]rune(convertText)) // one replacement character for each invalid byte
}

// kyamlPrinter prints all objects. cli-runtime's KYAML printer reads JSON as YAML, which fails for some
// characters.
type kyamlPrinter struct{ encoder kyaml.Encoder }

func (p *kyamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	jsonText, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := p.encoder.FromYAML(bytes.NewReader(jsonText), &text); err != nil {
		text.Reset()
		if retryErr := p.encoder.FromYAML(bytes.NewReader(escapeUnprintable(jsonText)),
			&text); retryErr != nil {
			return err
		}
	}
	_, err = text.WriteTo(w)
	return err
}

// escapeUnprintable escapes characters that YAML and JSON read differently. In JSON they occur only in
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
