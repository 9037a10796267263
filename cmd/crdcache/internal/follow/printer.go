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

// printer prints events. Whoever calls it has the turn of the screen, to which it prints.
type printer interface {
	print(e event) error
	// prepare returns what prints the event later, without the event itself.
	prepare(e event) (func() error, error)
	// flush prints what is kept, so that columns line up.
	flush() error
}

// verb is how an event is called, as kubectl does.
func verb(e event) string { return strings.ToUpper(string(e.Type)) }

// left reports whether an object is still there, and only the query does not hold for it any more.
func left(e event) bool { return e.Type == query.Deleted && !e.Gone }

// described is an event with its object, as kubectl get --output-watch-events prints it, but for what only a
// query knows.
func (o Options) described(e event) map[string]any {
	all := map[string]any{"type": verb(e), "object": e.Object.Object}
	if left(e) {
		all["exists"] = true
	}
	if o.Timestamps {
		all["time"] = e.stamp()
	}
	if e.manager != "" {
		all["manager"] = e.manager
	}
	return all
}

// newText returns the printer of a format that is no table.
func (o Options) newText(s *screen) (printer, error) {
	switch {
	case o.Style.Format.Name == print.YAML && o.Events:
		return whole{yamlEvents{s, o}.print}, nil
	case o.Events && (o.Style.Format.Name == print.JSON || o.Style.Format.Name == print.JSONLines):
		encoder := json.NewEncoder(s)
		encoder.SetEscapeHTML(false)
		return whole{func(e event) error {
			return encoder.Encode(o.described(e))
		}}, nil
	}
	single, err := print.New(o.Style.Format, s, print.Single, o.Style.NoHeaders)
	return objects{single}, err
}

// whole prints each event on its own.
type whole struct{ event func(event) error }

func (p whole) print(e event) error                   { return p.event(e) }
func (p whole) prepare(e event) (func() error, error) { return prepare(e, p.event) }
func (whole) flush() error                            { return nil }

// objects prints the objects of events in other formats, as kubectl get --watch does, but for line breaks.
type objects struct{ print.Printer }

func (p objects) print(e event) error                   { return p.Print(print.Decoded(e.Object)) }
func (p objects) prepare(e event) (func() error, error) { return prepare(e, p.print) }
func (p objects) flush() error                          { return p.Close() }

// prepare keeps the JSON of the object of an event, which takes a fraction of its memory.
func prepare(e event, show func(event) error) (func() error, error) {
	text, err := utiljson.Marshal(e.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", e.Key, err)
	}
	e.Object, e.Old = nil, nil
	return func() error {
		later := e
		later.Object = &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(text, &later.Object.Object); err != nil {
			return fmt.Errorf("printing %s: %w", e.Key, err)
		}
		return show(later)
	}, nil
}

// yamlEvents prints a document for each event.
type yamlEvents struct {
	out     io.Writer
	options Options
}

func (p yamlEvents) print(e event) error {
	text, err := print.MarshalYAML(p.options.described(e))
	if err != nil {
		return fmt.Errorf("printing %s: %w", e.Key, err)
	}
	_, err = fmt.Fprintf(p.out, "---\n%s", text)
	return err
}
