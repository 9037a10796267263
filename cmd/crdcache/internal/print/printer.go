package print

import (
	"context"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/naming"
)

type Object struct {
	// Key is "namespace/name", or "name".
	Key  string
	Kind schema.GroupKind
	// JSON is valid until the printer returns.
	JSON []byte
	// Decoded is shared and read-only. It takes precedence over JSON.
	Decoded *unstructured.Unstructured
	// Cluster is printed before a name, and as ClusterAnnotation. It is empty if the command reads one
	// cluster.
	Cluster string
}

// ClusterAnnotation is an annotation with the object's cluster, for output such as JSON.
const ClusterAnnotation = "crdcache.dev/cluster"

func NewObject(object *unstructured.Unstructured) Object {
	return Object{Key: keyOf(object), Kind: object.GroupVersionKind().GroupKind(), Decoded: object}
}

func keyOf(object *unstructured.Unstructured) string { return cache.MetaObjectToName(object).String() }

// decoder lets decoded objects share equal strings.
var decoder = jsontext.NewDecoder()

// decode returns a read-only object.
func (o Object) decode() (*unstructured.Unstructured, error) {
	if o.Decoded != nil {
		return o.Decoded, nil
	}
	content, err := decoder.Decode(o.JSON)
	return &unstructured.Unstructured{Object: content}, err
}

// WithCluster adds ClusterAnnotation. It returns o if cluster is empty.
func (o Object) WithCluster(cluster string) (Object, error) {
	if cluster == "" {
		return o, nil
	}
	o.Cluster = cluster
	object, err := o.decode()
	if err != nil {
		return o, err
	}
	content := maps.Clone(object.Object)
	metadata := cloneMap(content, "metadata")
	cloneMap(metadata, "annotations")[ClusterAnnotation] = o.Cluster
	o.Decoded, o.JSON = &unstructured.Unstructured{Object: content}, nil
	return o, nil
}

// cloneMap replaces a member of an object by its copy, or a new map, and returns it.
func cloneMap(object map[string]any, name string) map[string]any {
	value, _ := object[name].(map[string]any)
	if value = maps.Clone(value); value == nil {
		value = map[string]any{}
	}
	object[name] = value
	return value
}

// Printer prints objects. Close completes the output, which is valid also without objects.
type Printer interface {
	Print(o Object) error
	Close() error
}

// Framing selects whether objects are printed as a list.
type Framing int

const (
	// List prints all objects as one v1 List.
	List Framing = iota
	// EachSeparately prints each object separately. Templates are evaluated on each object, followed by a
	// line break.
	EachSeparately
	// SingleNamed prints a single named object. Templates are not followed by a line break.
	SingleNamed
)

// NewPrinter returns the printer of a format other than a table. It returns an error for an invalid argument
// of the format.
func NewPrinter(format Format, w io.Writer, framing Framing, noHeaders bool) (Printer, error) {
	switch format.Name {
	case JSON:
		return newJSONPrinter(w, framing), nil
	case YAML:
		return newYAMLPrinter(w, framing), nil
	case Name:
		return &textPrinter{w: w, appendObject: appendName}, nil
	case JSONLines:
		return &textPrinter{w: w, appendObject: appendJSONLine}, nil
	case CustomColumns:
		return parseCustomColumns(format.Argument, w, noHeaders)
	case CustomColumnsFile:
		return readCustomColumnsFile(format.Argument, w, noHeaders)
	}
	return newTemplate(format, w, framing)
}

// Writer prints the objects of one section.
type Writer struct {
	*Output
	SectionOptions
	ctx      context.Context
	resource discovery.Resource
	printer  Printer
}

func (w *Writer) printSection(s Section, printer Printer) error {
	sectionWriter := *w
	sectionWriter.resource, sectionWriter.printer = s.Resource, printer
	return s.Each(&sectionWriter)
}

// KeysOnly reports whether the printer reads only the keys of objects.
func (w *Writer) KeysOnly() bool { return w.Format.Name == Name }

func (w *Writer) Err() error { return w.ctx.Err() }

// Print prints an object. It fails after the command's context has ended.
func (w *Writer) Print(o Object) error {
	if err := w.Err(); err != nil {
		return err
	}
	w.printed++
	o.Kind, o.Cluster = w.resource.GVK.GroupKind(), w.Cluster
	if !w.Format.IsTable() && !w.KeysOnly() {
		var err error
		if o, err = o.WithCluster(w.Cluster); err != nil {
			return err
		}
	}
	return w.printer.Print(o)
}

// PrintKeys prints objects of which the printer reads only the keys.
func (w *Writer) PrintKeys(keys []string) error {
	return naming.Each(keys, func(key string) error { return w.Print(Object{Key: key}) })
}

// flusher is a Printer that buffers rows to align their columns.
type flusher interface{ Flush() error }

// Flush writes buffered rows. Later rows never make a column narrower.
func (w *Writer) Flush() error {
	if printer, ok := w.printer.(flusher); ok {
		if err := printer.Flush(); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	return w.flush()
}
