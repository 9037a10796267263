package follow

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/query"
)

// printer prints events to the screen. Callers must hold the lock of the screen.
type printer interface {
	print(e event) error
	// prepare returns a function that prints the event later without retaining its objects.
	prepare(e event) (func() error, error)
	flush() error
}

func eventName(e event) string { return strings.ToUpper(string(e.Type)) }

// stoppedMatching reports whether an object still exists but no longer matches the query.
func stoppedMatching(e event) bool { return e.Type == query.Deleted && !e.Gone }

// eventObject returns the event as kubectl get --output-watch-events prints it, with additional fields.
func (o Options) eventObject(e event) map[string]any {
	record := map[string]any{"type": eventName(e), "object": e.Object.Object}
	if e.cluster != "" {
		record["cluster"] = e.cluster
	}
	if stoppedMatching(e) {
		record["exists"] = true
	}
	return record
}

func (o Options) newTextPrinter(s *stdout) (printer, error) {
	switch {
	case o.Style.Format.Name == print.YAML && o.Events:
		return eventPrinter{yamlEventPrinter{s, o}.print}, nil
	case o.Events && (o.Style.Format.Name == print.JSON || o.Style.Format.Name == print.JSONLines):
		encoder := json.NewEncoder(s)
		encoder.SetEscapeHTML(false)
		return eventPrinter{func(e event) error {
			return encoder.Encode(o.eventObject(e))
		}}, nil
	}
	textPrinter, err := print.NewPrinter(o.Style.Format, s, print.EachSeparately, o.Style.NoHeaders)
	if o.Cluster != "" {
		print.ShowClusters(textPrinter)
	}
	return objectPrinter{textPrinter}, err
}

type eventPrinter struct{ printEvent func(event) error }

func (p eventPrinter) print(e event) error                   { return p.printEvent(e) }
func (p eventPrinter) prepare(e event) (func() error, error) { return retainJSON(e, p.printEvent) }
func (eventPrinter) flush() error                            { return nil }

// objectPrinter prints the objects of events as kubectl get --watch does, except for line breaks.
type objectPrinter struct{ print.Printer }

func (p objectPrinter) print(e event) error {
	object, err := print.NewObject(e.Object).WithCluster(e.cluster)
	if err != nil {
		return err
	}
	return p.Print(object)
}

func (p objectPrinter) prepare(e event) (func() error, error) { return retainJSON(e, p.print) }
func (p objectPrinter) flush() error                          { return p.Close() }

// retainJSON returns a function that prints the event later. Until then it retains the object as JSON, which
// needs less memory than the decoded object.
func retainJSON(e event, printEvent func(event) error) (func() error, error) {
	text, err := utiljson.Marshal(e.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("print %s: %w", e.Key, err)
	}
	e.Object, e.Old = nil, nil
	return func() error {
		retained := e
		retained.Object = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &retained.Object.Object); err != nil {
			return fmt.Errorf("print %s: %w", e.Key, err)
		}
		return printEvent(retained)
	}, nil
}

type yamlEventPrinter struct {
	out     io.Writer
	options Options
}

func (p yamlEventPrinter) print(e event) error {
	text, err := print.MarshalYAML(p.options.eventObject(e))
	if err != nil {
		return fmt.Errorf("print %s: %w", e.Key, err)
	}
	_, err = fmt.Fprintf(p.out, "---\n%s", text)
	return err
}
