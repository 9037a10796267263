package print

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// textPrinter prints objects byte for byte as kubectl get does, with the texts of a list around them.
type textPrinter struct {
	w            io.Writer
	appendObject func(text []byte, o Object) ([]byte, error)
	// prefix is written before the next object, and suffix by Close. After the first object, nextPrefix and
	// lastSuffix replace them.
	prefix, suffix, nextPrefix, lastSuffix string
	buffer                                 []byte
}

func (p *textPrinter) Print(o Object) error {
	text, err := p.appendObject(append(p.buffer[:0], p.prefix...), o)
	if err != nil {
		return err
	}
	p.buffer, p.prefix, p.suffix = text, p.nextPrefix, p.lastSuffix
	_, err = p.w.Write(text)
	return err
}

func (p *textPrinter) Close() error {
	_, err := io.WriteString(p.w, p.suffix)
	return err
}

const (
	jsonListStart  = "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
	jsonListEnd    = "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	jsonIndent     = "    "
	jsonItemIndent = jsonIndent + jsonIndent
)

// newJSONPrinter prints a v1 List, or single objects.
func newJSONPrinter(w io.Writer, framing Framing) *textPrinter {
	p, itemIndent, itemEnd := &textPrinter{w: w}, "", "\n"
	if framing == List {
		itemIndent, itemEnd = jsonItemIndent, ""
		p.prefix, p.nextPrefix = jsonListStart+"\n"+jsonItemIndent, ",\n"+jsonItemIndent
		p.suffix, p.lastSuffix = jsonListStart+jsonListEnd, "\n"+jsonIndent+jsonListEnd
	}
	p.appendObject = func(text []byte, o Object) ([]byte, error) {
		text, ok := jsontext.AppendIndented(text, o.JSON, itemIndent, jsonIndent)
		if !ok {
			object, err := o.decode()
			if err != nil {
				return nil, err
			}
			indented, err := json.MarshalIndent(object.Object, itemIndent, jsonIndent)
			if err != nil {
				return nil, fmt.Errorf("print %s: %w", describeObject(object), err)
			}
			text = append(text, indented...)
		}
		return append(text, itemEnd...), nil
	}
	return p
}

func describeObject(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + keyOf(obj) }

// appendName appends a line "kind.group/name", as kubectl get -o name does. It reads only Key and Kind.
func appendName(text []byte, o Object) ([]byte, error) {
	return fmt.Appendf(text, "%s%s/%s\n", ClusterPrefix(o.Cluster), strings.ToLower(o.Kind.String()),
		o.Key[strings.LastIndexByte(o.Key, '/')+1:]), nil
}

// ClusterPrefix returns the start of a line about an object: the name of its cluster and a tab. It returns ""
// if the command reads only one cluster.
func ClusterPrefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return Printable(cluster) + "\t"
}

// appendJSONLine appends an object on one line, without escapes for HTML.
func appendJSONLine(text []byte, o Object) ([]byte, error) {
	object, err := o.decode()
	if err != nil {
		return nil, err
	}
	buffer := bytes.NewBuffer(text)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object.Object); err != nil {
		return nil, fmt.Errorf("print %s: %w", describeObject(object), err)
	}
	return buffer.Bytes(), nil
}
