package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// identity is what tells objects and lists apart.
type identity struct{ APIVersion, Kind, Namespace, Name string }

// identityOf returns what the parts of an object tell.
func identityOf(apiVersion, kind, metadata []byte) identity {
	id := identity{APIVersion: textOf(apiVersion), Kind: textOf(kind)}
	id.Namespace, id.Name = namesOf(metadata)
	return id
}

// namesOf returns namespace and name of metadata, which is valid JSON. Of a key that is there twice the last one counts.
func namesOf(metadata []byte) (namespace, name string) {
	at := 1
	space := func() {
		for at < len(metadata) && isSpace(metadata[at]) {
			at++
		}
	}
	value := func() []byte {
		begin := at
		end, ok, _ := jsontext.SkipValue(metadata, begin)
		if !ok {
			at = len(metadata) // what is too unusual for that has no names here
			return nil
		}
		at = end
		return metadata[begin:end]
	}
	if len(metadata) == 0 || metadata[0] != '{' {
		return "", ""
	}
	for space(); at < len(metadata) && metadata[at] == '"'; space() {
		key := value()
		space()
		at++ // the colon
		space()
		switch text := value(); {
		case isKey(key, "namespace"):
			namespace = textOf(text)
		case isKey(key, "name"):
			name = textOf(text)
		}
		space()
		at++ // the comma
	}
	return namespace, name
}

// list takes the parts of a document that has items, and yields them as soon as it is certain that they are objects:
// kubectl prints the kind of a list after its items.
type list struct {
	Place
	yield func(Entry) bool

	streams bool // items came one by one
	twice   bool // the items came twice
	header  identity
	parts   map[string]json.RawMessage // without items
	held    []Entry                    // items that await the kind
	items   int
	yielded int
	depth   int // of lists that this one is in
}

func (e *Entry) take(id identity) {
	e.APIVersion, e.Kind, e.Namespace, e.Name = id.APIVersion, id.Kind, id.Namespace, id.Name
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// field takes a field of the document other than items.
func (l *list) field(name string, value json.RawMessage) {
	switch name {
	case "apiVersion":
		l.header.APIVersion = textOf(value)
	case "kind":
		l.header.Kind = textOf(value)
	}
	if l.parts == nil {
		l.parts = map[string]json.RawMessage{}
	}
	l.parts[name] = value
}

// item takes an item, and returns false to stop.
func (l *list) item(line int, data []byte, own identity, err error) bool {
	l.items++
	e := Entry{Place: Place{line, l.Document, l.items}, Data: data, Err: err}
	e.take(own)
	if err == nil && !l.certain(own) {
		e.Data = bytes.Clone(data)
		l.held = append(l.held, e)
		return true
	}
	if err == nil {
		l.yielded++
	}
	return l.give(e)
}

// maxLists is how deep lists may be in each other. Each level is read again, so that this bounds the work.
const maxLists = 8

var errLists = fmt.Errorf("there are more than %d lists in each other", maxLists)

// give yields an item, or the items of one that is a list itself, as kubectl does.
func (l *list) give(e Entry) bool {
	if e.Err != nil || !isList(e.Kind) {
		return l.yield(e)
	}
	parts, err := partsOf(e.Data)
	items := bytes.TrimSpace(parts["items"])
	if err != nil || len(items) == 0 || items[0] != '[' && string(items) != "null" {
		return l.yield(e)
	}
	if l.depth == maxLists {
		return l.yield(Entry{Place: e.Place, Err: errLists})
	}
	inner := &list{Place: e.Place, yield: l.yield, depth: l.depth + 1}
	for name, value := range parts {
		if name != "items" {
			inner.field(name, value)
		}
	}
	return inner.all(items) && inner.end()
}

// all takes the items of a document that was read as a whole: an array, or else nothing.
func (l *list) all(items json.RawMessage) bool {
	var all []json.RawMessage
	_ = json.Unmarshal(items, &all) // what is no array is no list
	for _, data := range all {
		var own identity
		if parts, err := partsOf(data); err == nil {
			own = identityOf(parts["apiVersion"], parts["kind"], parts["metadata"])
		}
		if !l.item(l.Line, data, own, nil) {
			return false
		}
	}
	return true
}

// certain reports whether an item is known to be an object by itself, and complete.
func (l *list) certain(own identity) bool {
	if own.APIVersion == "" || own.Kind == "" {
		return false
	}
	if l.header.Kind != "" {
		return isList(l.header.Kind)
	}
	// No type of the core group has items but lists, and a list of another group has items of that group.
	return l.header.APIVersion == "v1" || l.header.APIVersion != "" && l.header.APIVersion == own.APIVersion
}

// end is called after the last field.
func (l *list) end() bool {
	switch {
	case l.header.Kind == "" || l.header.APIVersion == "":
		return l.yield(Entry{Place: l.Place, Err: ErrNoKind})
	case isList(l.header.Kind):
		return l.release() && (!l.twice || l.yield(Entry{Place: l.Place, Err: errItemsTwice}))
	case l.yielded > 0:
		return l.yield(Entry{Place: l.Place, Err: fmt.Errorf("the kind is %s, but it has items like a list", l.header.Kind)})
	}
	return l.whole()
}

var errItemsTwice = errors.New(`the key "items" is there twice`)

// release yields the items that waited for the kind of the list, which is theirs.
func (l *list) release() bool {
	for _, e := range l.held {
		if e.Data, e.Err = l.typed(e.Data); e.Err == nil {
			e.APIVersion, e.Kind = cmp.Or(e.APIVersion, l.header.APIVersion), cmp.Or(e.Kind, strings.TrimSuffix(l.header.Kind, "List"))
		}
		if !l.give(e) {
			return false
		}
	}
	return true
}

// typed gives an item of a typed list the kind and version that it need not repeat.
func (l *list) typed(data json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotObject, err)
	}
	if fields == nil {
		return nil, ErrNotObject
	}
	kind := strings.TrimSuffix(l.header.Kind, "List")
	if kind == "" && (fields["kind"] == nil || fields["apiVersion"] == nil) {
		return nil, ErrNoKind
	}
	if fields["kind"] != nil && fields["apiVersion"] != nil {
		return data, nil
	}
	if fields["kind"] == nil {
		fields["kind"], _ = json.Marshal(kind) // a string, which cannot fail
	}
	if fields["apiVersion"] == nil {
		fields["apiVersion"] = l.parts["apiVersion"]
	}
	return json.Marshal(fields)
}

// whole yields a document that is no list.
func (l *list) whole() bool {
	items := make([]json.RawMessage, 0, len(l.held))
	for _, e := range l.held {
		items = append(items, e.Data)
	}
	l.parts["items"], _ = json.Marshal(items) // of JSON, which cannot fail
	data, err := json.Marshal(l.parts)
	e := Entry{Place: l.Place, Data: data, Err: err}
	e.take(identityOf(l.parts["apiVersion"], l.parts["kind"], l.parts["metadata"]))
	return l.yield(e)
}
