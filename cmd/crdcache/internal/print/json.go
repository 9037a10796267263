package print

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// jsonPrinter prints a v1 List, or single objects, byte for byte as kubectl get -o json does.
type jsonPrinter struct {
	w              io.Writer
	eachSeparately bool
	hasPrinted     bool
	buffer         []byte
}

const (
	jsonListStart  = "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
	jsonListEnd    = "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	jsonIndent     = "    "
	jsonItemIndent = jsonIndent + jsonIndent
)

func (p *jsonPrinter) Print(o Object) error {
	prefix := jsonItemIndent
	if p.eachSeparately {
		prefix = ""
	}
	text, ok := jsontext.AppendIndented(append(p.buffer[:0], p.separator()...), o.JSON, prefix, jsonIndent)
	if !ok {
		object, err := o.decode()
		if err != nil {
			return err
		}
		indented, err := json.MarshalIndent(object.Object, prefix, jsonIndent)
		if err != nil {
			return fmt.Errorf("print %s: %w", describeObject(object), err)
		}
		text = append(text, indented...)
	}
	if p.eachSeparately {
		text = append(text, '\n')
	}
	p.buffer, p.hasPrinted = text, true
	_, err := p.w.Write(text)
	return err
}

func (p *jsonPrinter) separator() string {
	switch {
	case p.eachSeparately:
		return ""
	case p.hasPrinted:
		return ",\n" + jsonItemIndent
	}
	return jsonListStart + "\n" + jsonItemIndent
}

func (p *jsonPrinter) Close() error {
	suffix := "\n" + jsonIndent + jsonListEnd
	switch {
	case p.eachSeparately:
		return nil
	case !p.hasPrinted:
		suffix = jsonListStart + jsonListEnd
	}
	_, err := io.WriteString(p.w, suffix)
	return err
}

func describeObject(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + keyOf(obj) }

// namePrinter prints "kind.group/name" lines, as kubectl get -o name does. It reads only Key and Kind.
type namePrinter struct{ w io.Writer }

func (p namePrinter) Print(o Object) error {
	_, err := fmt.Fprintf(p.w, "%s%s/%s\n", ClusterPrefix(o.Cluster), strings.ToLower(o.Kind.String()),
		o.Key[strings.LastIndexByte(o.Key, '/')+1:])
	return err
}

// ClusterPrefix returns the start of a line about an object: the name of its cluster and a tab. It returns ""
// if the command reads only one cluster.
func ClusterPrefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return Printable(cluster) + "\t"
}

func (namePrinter) Close() error { return nil }

type jsonLinesPrinter struct{ encoder *json.Encoder }

func (p *jsonLinesPrinter) Print(o Object) error {
	object, err := o.decode()
	if err != nil {
		return err
	}
	if err := p.encoder.Encode(object.Object); err != nil {
		return fmt.Errorf("print %s: %w", describeObject(object), err)
	}
	return nil
}

func (p *jsonLinesPrinter) Close() error { return nil }
