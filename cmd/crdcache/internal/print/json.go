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
	w       io.Writer
	single  bool
	printed bool
	buffer  []byte
}

const (
	jsonHead  = "{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
	jsonTail  = "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
	jsonStep  = "    "
	jsonInset = jsonStep + jsonStep
)

func (p *jsonPrinter) Print(o Object) error {
	prefix := jsonInset
	if p.single {
		prefix = ""
	}
	text, ok := jsontext.AppendIndented(append(p.buffer[:0], p.separator()...), o.JSON, prefix, jsonStep)
	if !ok {
		object, err := o.decode()
		if err != nil {
			return err
		}
		indented, err := json.MarshalIndent(object.Object, prefix, jsonStep)
		if err != nil {
			return fmt.Errorf("print %s: %w", describeObject(object), err)
		}
		text = append(text, indented...)
	}
	if p.single {
		text = append(text, '\n')
	}
	p.buffer, p.printed = text, true
	_, err := p.w.Write(text)
	return err
}

// separator returns the text before the next object.
func (p *jsonPrinter) separator() string {
	switch {
	case p.single:
		return ""
	case p.printed:
		return ",\n" + jsonInset
	}
	return jsonHead + "\n" + jsonInset
}

func (p *jsonPrinter) Close() error {
	end := "\n" + jsonStep + jsonTail
	switch {
	case p.single:
		return nil
	case !p.printed:
		end = jsonHead + jsonTail
	}
	_, err := io.WriteString(p.w, end)
	return err
}

// describeObject names an object in an error.
func describeObject(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + keyOf(obj) }

// namePrinter prints "kind.group/name" lines, as kubectl get -o name does. It needs only keys and kinds.
type namePrinter struct{ w io.Writer }

func (p namePrinter) Print(o Object) error {
	_, err := fmt.Fprintf(p.w, "%s%s/%s\n", ClusterPrefix(o.Cluster), strings.ToLower(o.Kind.String()),
		o.Key[strings.LastIndexByte(o.Key, '/')+1:])
	return err
}

// ClusterPrefix returns the name of a cluster and a tab, which start a line about one of its objects. It is
// empty for the only cluster.
func ClusterPrefix(cluster string) string {
	if cluster == "" {
		return ""
	}
	return Printable(cluster) + "\t"
}

func (namePrinter) Close() error { return nil }

// jsonLinesPrinter prints each object as compact JSON on one line.
type jsonLinesPrinter struct{ encoder *json.Encoder }

func newJSONLines(w io.Writer) *jsonLinesPrinter {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &jsonLinesPrinter{encoder}
}

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
