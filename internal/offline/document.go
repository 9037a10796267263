package offline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// place is where in a file something is.
type place struct {
	line, document, item int
}

// entry is one object as it stands in a file, or why there is none.
type entry struct {
	place
	data []byte // JSON; nil with err
	err  error
}

// decode gives the object.
func (e entry) decode() (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(e.data, &u.Object); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoObject, err)
	}
	if u.Object == nil {
		return nil, errNoObject
	}
	return u, nil
}

// identify checks what every object has, and gives its kind.
func identify(u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil || gv.Version == "" {
		return schema.GroupVersionKind{}, fmt.Errorf("%s has the apiVersion %q, which is neither VERSION nor GROUP/VERSION", u.GetKind(), u.GetAPIVersion())
	}
	gvk := gv.WithKind(u.GetKind())
	switch name, there, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", "name"); {
	case err != nil:
		return gvk, fmt.Errorf("%s has metadata that is no map", gvk.GroupKind())
	case !there || name == nil || name == "":
		return gvk, fmt.Errorf("%s has no metadata.name", gvk.GroupKind())
	case u.GetName() == "":
		return gvk, fmt.Errorf("%s has a metadata.name that is no string: %v; put it in quotes", gvk.GroupKind(), name)
	}
	return gvk, nil
}

// errNoObject is the error for a document that is something else, which is nothing bad in a folder of all sorts.
var errNoObject = errors.New("not a Kubernetes object")

// readEntries calls yield for every object of a stream, those of Lists one by one, and for everything that
// cannot be read. It ends early when yield returns false. The error is that of reading.
func readEntries(r io.Reader, yield func(entry) bool) error {
	counter := newLineCounter(decodeUTF16(r))
	in := bufio.NewReaderSize(counter, 1<<16)
	start, err := in.Peek(1 << 12)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if looksLikeJSON(string(start)) {
		return (&jsonReader{in: in, counter: counter, yield: yield}).run()
	}
	counter.idle = true // YAML is read by lines
	return (&yamlReader{in: in, yield: yield}).run()
}

// looksLikeJSON tells JSON from YAML's flow style, which seldom quotes keys.
func looksLikeJSON(start string) bool {
	start = strings.TrimLeft(strings.TrimPrefix(start, "\ufeff"), " \t\r\n")
	rest, ok := strings.CutPrefix(start, "{")
	rest = strings.TrimLeft(rest, " \t\r\n")
	return ok && (strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "}"))
}

// identity is what tells objects and lists apart.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// gatherer takes the parts of one document and yields its object, or the items of a list as soon as it is
// certain that they are that: kubectl prints the kind of a list after its items.
type gatherer struct {
	place
	header identity
	parts  map[string]json.RawMessage // without items
	held   []entry                    // items that await the kind
	items  int
	told   int // items that were yielded
	listed bool
	yield  func(entry) bool
}

// field takes a field of the document other than items.
func (g *gatherer) field(name string, value json.RawMessage) {
	switch name {
	case "apiVersion":
		_ = json.Unmarshal(value, &g.header.APIVersion) // what is no string is reported by who needs it
	case "kind":
		_ = json.Unmarshal(value, &g.header.Kind)
	}
	if g.parts == nil {
		g.parts = map[string]json.RawMessage{}
	}
	g.parts[name] = value
}

// item takes an item, and returns false to stop.
func (g *gatherer) item(line int, data json.RawMessage, err error) bool {
	g.listed = true
	g.items++
	e := entry{place: place{line, g.document, g.items}, data: data, err: err}
	if err != nil {
		return g.yield(e)
	}
	var own identity
	_ = json.Unmarshal(data, &own) // what has neither is typed by the list, or reported
	if !g.certain(own) {
		g.held = append(g.held, e)
		return true
	}
	g.told++
	return g.yield(e)
}

// certain reports whether an item is known to be an object by itself, and complete.
func (g *gatherer) certain(own identity) bool {
	if own.APIVersion == "" || own.Kind == "" {
		return false
	}
	if g.header.Kind != "" {
		return isList(g.header.Kind)
	}
	// No type of the core group has items but lists, and a list of another group has items of that group.
	return g.header.APIVersion == "v1" || g.header.APIVersion != "" && g.header.APIVersion == own.APIVersion
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// end is called after the last field.
func (g *gatherer) end() bool {
	switch {
	case len(g.parts) == 0 && !g.listed:
		return true
	case g.header.Kind == "" || g.header.APIVersion == "":
		return g.yield(entry{place: g.place, err: fmt.Errorf("%w: it has no apiVersion or no kind", errNoObject)})
	case g.listed && isList(g.header.Kind):
		return g.release()
	case g.told > 0:
		return g.yield(entry{place: g.place, err: fmt.Errorf("the kind is %s, but it has items like a list", g.header.Kind)})
	}
	return g.whole()
}

// release yields the items that waited for the kind of the list, which is theirs.
func (g *gatherer) release() bool {
	for _, e := range g.held {
		data, err := g.typed(e.data)
		if err != nil {
			e.data, e.err = nil, err
		} else {
			e.data = data
		}
		if !g.yield(e) {
			return false
		}
	}
	return true
}

// typed gives an item of a typed list the kind and version that it need not repeat.
func (g *gatherer) typed(data json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoObject, err)
	}
	kind := strings.TrimSuffix(g.header.Kind, "List")
	if kind == "" && (fields["kind"] == nil || fields["apiVersion"] == nil) {
		return nil, fmt.Errorf("%w: it has no apiVersion or no kind", errNoObject)
	}
	if fields["kind"] == nil {
		fields["kind"], _ = json.Marshal(kind) // a string, which cannot fail
	}
	if fields["apiVersion"] == nil {
		fields["apiVersion"] = g.parts["apiVersion"]
	}
	return json.Marshal(fields)
}

// whole yields a document that is no list.
func (g *gatherer) whole() bool {
	if g.listed {
		items := make([]json.RawMessage, 0, len(g.held))
		for _, e := range g.held {
			items = append(items, e.data)
		}
		g.parts["items"], _ = json.Marshal(items) // of JSON, which cannot fail
	}
	data, err := json.Marshal(g.parts)
	return g.yield(entry{place: g.place, data: data, err: err})
}
