package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// list collects the fields of a document, and yields its items as soon as they are known to be objects.
// kubectl prints the kind of a List after its items.
type list struct {
	Position
	yield func(Entry) bool

	members       []member // other than items
	hasItems      bool     // an array of items was read
	duplicateKey  *Entry   // the error of the first key that occurs twice
	hasFailedItem bool     // an item could not be read
	pendingItems  []Entry  // items that wait for the kind
	itemCount     int
	yieldedCount  int
	depth         int // of enclosing lists
	isArray       bool
	foreignCount  int // elements of an array that are not objects
	// data is the JSON of a document that was decoded before it was added; nil for a streamed document.
	data     json.RawMessage
	audit    *auditLog // of the text
	collects string    // name of the type of untyped objects, if it is known
}

type member struct {
	name  string
	value json.RawMessage
}

// addField adds a field other than an array of items. line is the line of its key.
func (l *list) addField(name string, value json.RawMessage, line int) {
	if l.fieldValue(name) != nil || name == "items" && l.hasItems {
		l.noteDuplicate(name, line)
	}
	l.members = append(l.members, member{name, value})
}

func (l *list) beginItems() {
	if l.hasItems || l.fieldValue("items") != nil {
		l.noteDuplicate("items", l.Line)
	}
	l.hasItems = true
}

func (l *list) noteDuplicate(path string, line int) {
	if l.duplicateKey == nil {
		l.duplicateKey = &Entry{Position: l.Position, Err: duplicateError(path)}
		l.duplicateKey.Line = line
	}
}

const (
	errPage          = PartialError("it is a page of a longer list: add the other pages, without metadata.continue")
	errFailedRequest = PartialError("it is the answer of a request without objects: collect it again")
	errNoItems       = PartialError("the list has no items: collect it again, or delete it if it is empty")
	errForeignItem   = PartialError("an item of the list is no object, or has no kind: collect it again")
)

func duplicateError(path string) error { return fmt.Errorf("duplicate key %q", path) }

// duplicateKey returns the path of a key that occurs twice, in the notation of sigs.k8s.io/json.
func duplicateKey(data []byte) (path string, found bool) {
	var value any
	problems, _ := kjson.UnmarshalStrict(data, &value, kjson.DisallowDuplicateFields)
	var duplicate kjson.FieldError
	if found = len(problems) > 0 && errors.As(problems[0], &duplicate); found {
		path = duplicate.FieldPath()
	}
	return path, found
}

func (l *list) fieldValue(name string) json.RawMessage {
	for _, m := range l.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (l *list) kind() string       { return stringOf(l.fieldValue("kind")) }
func (l *list) apiVersion() string { return stringOf(l.fieldValue("apiVersion")) }

// isPage reports whether the list is a page of a longer one.
func (l *list) isPage() bool {
	var metadata metav1.ListMeta
	_ = json.Unmarshal(l.fieldValue("metadata"), &metadata) // an object
	return metadata.Continue != "" || ptr.Deref(metadata.RemainingItemCount, 0) > 0
}

// addItem returns false to stop.
func (l *list) addItem(line int, e Entry) bool {
	l.itemCount++
	e.Position = Position{Line: line, Document: l.Document, Item: l.itemCount}
	if e.Err != nil {
		l.hasFailedItem = true
		return l.yield(e)
	}
	switch {
	case l.isArray && len(l.members) == 0 && (e.Kind == "" || e.APIVersion == ""):
		l.foreignCount++
		return true
	case isList(l.kind()) && l.apiVersion() != "":
		l.yieldedCount++
		return l.emitPending() && l.emitTyped(e)
	case len(l.pendingItems) > 0 || !l.isCertainlyObject(e): // entries keep their order
		e.Data, e.Canonical = bytes.Clone(e.Data), nil
		l.pendingItems = append(l.pendingItems, e)
		return true
	}
	l.yieldedCount++
	return l.emit(e)
}

// isCertainlyObject reports whether an item is an object, independent of the fields after the items.
func (l *list) isCertainlyObject(e Entry) bool {
	if e.APIVersion == "" || e.Kind == "" {
		return false
	}
	if l.isArray {
		return true
	}
	if kind := l.kind(); kind != "" {
		return isList(kind)
	}
	// In the core group only lists have items, and a list of another group has items of the same group.
	version := l.apiVersion()
	return version == "v1" || version != "" && version == e.APIVersion
}

// maxLists limits the depth of nested lists, which are decoded separately.
const maxLists = 8

// emit yields an item, or the items of an item that is a list.
func (l *list) emit(e Entry) bool {
	switch {
	case e.Err == nil && e.Kind == "Event" && strings.HasPrefix(e.APIVersion, "audit.k8s.io/"):
		return l.emitAuditEvent(e)
	case e.Err == nil && e.Kind == "Status" && e.APIVersion == "v1":
		fields, _ := fieldsOf(e.Data)
		e.Err = fmt.Errorf("%w: %.200s", errFailedRequest, stringOf(fields["message"]))
		e.Data, e.Canonical = nil, nil
		return l.yield(e)
	case strings.HasPrefix(e.APIVersion, metav1.GroupName+"/"):
		e.Data, e.Canonical, e.Err = nil, nil, fmt.Errorf("%w: a %s has only columns or metadata: write the "+
			"objects with 'kubectl get -o json'", ErrNotObject, e.Kind)
		return l.yield(e)
	case e.Err != nil || !isList(e.Kind):
		return l.yield(e)
	}
	fields, _ := fieldsOf(e.Data)
	if items := fields["items"]; len(items) == 0 || items[0] != '[' && string(items) != "null" {
		if e.Name == "" {
			e = Entry{Position: e.Position, Err: errNoItems}
		}
		return l.yield(e)
	}
	if l.depth == maxLists {
		return l.yield(Entry{Position: e.Position, Err: fmt.Errorf("more than %d nested lists", maxLists)})
	}
	inner := &list{Position: e.Position, yield: l.yield, depth: l.depth + 1, audit: l.audit}
	return inner.addDecoded(e.Data, nil)
}

// finish yields the remaining items, or the document itself if it is not a list. It returns false to stop.
func (l *list) finish() bool {
	fail := func(err error) bool { return l.yield(Entry{Position: l.Position, Err: err}) }
	kind := l.kind()
	switch {
	case l.isArray && l.yieldedCount == 0 && l.foreignCount > 0:
		return fail(ErrNotObject)
	case l.isArray && l.foreignCount > 0:
		return fail(errForeignItem)
	case isList(kind) && l.itemCount == 0 && l.duplicateKey == nil && l.apiVersion() != "" && !l.isPage() &&
		(l.isArray || l.hasItems || string(l.fieldValue("items")) == "null"):
		return l.yield(Entry{Position: l.Position,
			Err: &Note{APIVersion: l.apiVersion(), Kind: strings.TrimSuffix(kind, "List")}})
	case l.isArray: // also an empty one is an answer
		return l.itemCount > 0 || l.yield(Entry{Position: l.Position, Err: &Note{}})
	case l.isWatchEvent():
		return l.emitWatchEvent()
	case kind == "" && l.hasItems && l.yieldedCount == 0 && len(l.pendingItems) > 0 && !slices.ContainsFunc(
		l.pendingItems, func(e Entry) bool { return e.APIVersion == "" || e.Kind == "" }): // needs no kind
		return l.emitPending()
	case !isSet(l.fieldValue("kind")) || !isSet(l.fieldValue("apiVersion")), l.hasItems &&
		(kind == "" || l.apiVersion() == ""):
		return fail(ErrNoKind)
	case isList(kind) && l.hasItems:
		if !l.emitPending() || l.isPage() && !fail(errPage) {
			return false
		}
	case l.hasItems && l.yieldedCount > 0:
		return fail(fmt.Errorf("kind %s is not a list, but has items", kind))
	case isList(kind) && l.fieldValue("items") != nil:
		return fail(errors.New("items is not an array"))
	case l.duplicateKey == nil && !l.hasFailedItem:
		return l.emitDocument()
	}
	return l.duplicateKey == nil || l.yield(*l.duplicateKey)
}

// addDecoded yields a decoded document, or its items at the lines that lines returns. It returns false
// to stop.
func (l *list) addDecoded(data []byte, lines func() []int) bool {
	fields, err := fieldsOf(data)
	items, isArray := elementsOf(data)
	if err != nil && !isArray {
		return l.yield(Entry{Position: l.Position, Err: ErrNotObject})
	}
	if isArray {
		l.beginArray()
	}
	if elements, hasItems := elementsOf(fields["items"]); hasItems {
		items = elements
		delete(fields, "items")
		l.beginItems()
	}
	l.data = data
	for name, value := range fields {
		l.addField(name, value, l.Line)
	}
	var lineNumbers []int
	if len(items) > 0 && lines != nil {
		lineNumbers = lines()
	}
	for i, item := range items {
		line := l.Line
		if i < len(lineNumbers) {
			line = lineNumbers[i]
		}
		if l.depth > 0 {
			l.itemCount = l.Item - 1 // nested items have the place of their list
		}
		if !l.addItem(line, entryOf(item)) {
			return false
		}
	}
	return l.finish()
}

func (l *list) emitPending() bool {
	pending := l.pendingItems
	l.pendingItems = nil
	return !slices.ContainsFunc(pending, func(e Entry) bool { return !l.emitTyped(e) })
}

// emitTyped yields an item with the list's kind and version as defaults.
func (l *list) emitTyped(e Entry) bool {
	if e.APIVersion != "" && e.Kind != "" {
		return l.emit(e)
	}
	data, err := l.withListType(e.Data)
	if err != nil {
		return l.yield(Entry{Position: e.Position, Err: errForeignItem})
	}
	e.Data = data
	e.APIVersion = cmp.Or(e.APIVersion, l.apiVersion())
	e.Kind = cmp.Or(e.Kind, strings.TrimSuffix(l.kind(), "List"))
	return l.emit(e)
}

// withListType adds the kind and version of a typed list to an item without them.
func (l *list) withListType(data json.RawMessage) (json.RawMessage, error) {
	fields, err := fieldsOf(data)
	if err != nil {
		return nil, ErrNotObject
	}
	_, hasVersion := fields["apiVersion"]
	_, hasKind := fields["kind"]
	kind := strings.TrimSuffix(l.kind(), "List")
	if hasVersion && hasKind {
		return data, nil
	} else if kind == "" {
		return nil, ErrNoKind
	}
	typed := []byte("{")
	if !hasVersion {
		typed = fmt.Appendf(typed, `"apiVersion":%s,`, l.fieldValue("apiVersion"))
	}
	if !hasKind {
		typed = fmt.Appendf(typed, `"kind":%q,`, kind)
	}
	rest := bytes.TrimLeft(data[bytes.IndexByte(data, '{')+1:], " \t\r\n")
	if rest[0] == '}' {
		typed = typed[:len(typed)-1]
	}
	return append(typed, rest...), nil
}

// emitDocument yields a document that is not a list.
func (l *list) emitDocument() bool {
	e := Entry{Position: l.Position}
	if l.data != nil {
		e.identify(l.data)
		return l.emit(e)
	}
	fields := map[string]any{}
	for _, m := range l.members {
		fields[m.name] = m.value
	}
	if l.hasItems {
		items := []json.RawMessage{}
		for _, e := range l.pendingItems {
			items = append(items, e.Data)
		}
		fields["items"] = items
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return l.yield(Entry{Position: l.Position, Err: err})
	}
	e.identify(data)
	return l.emit(e)
}

func entryOf(data json.RawMessage) (e Entry) {
	e.identify(data)
	return e
}

func isList(kind string) bool { return strings.HasSuffix(kind, "List") }

// identify sets the data of an entry and the fields that identify its object.
func (e *Entry) identify(data json.RawMessage) {
	fields, _ := fieldsOf(data)
	metadata, _ := fieldsOf(fields["metadata"])
	e.Data, e.APIVersion, e.Kind = data, stringOf(fields["apiVersion"]), stringOf(fields["kind"])
	e.Namespace, e.Name = stringOf(metadata["namespace"]), stringOf(metadata["name"])
}

// fieldsOf returns the fields of a JSON object. The error wraps ErrNotObject.
func fieldsOf(data []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotObject, err)
	}
	if fields == nil {
		return nil, ErrNotObject
	}
	return fields, nil
}

// elementsOf returns the elements of a JSON array, and reports whether the value is one.
func elementsOf(value json.RawMessage) (elements []json.RawMessage, isArray bool) {
	if len(value) == 0 || value[0] != '[' {
		return nil, false
	}
	isArray = json.Unmarshal(value, &elements) == nil
	return elements, isArray
}

// stringOf returns the value of a JSON string, or "" for any other JSON.
func stringOf(value json.RawMessage) string {
	var s string
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if end, ok := jsontext.ScanPlain(value, 1); ok && end == len(value) {
		return string(value[1 : end-1])
	}
	_ = json.Unmarshal(value, &s) // valid JSON
	return s
}

// isSet reports whether a field is not missing, null or an empty string.
func isSet(value json.RawMessage) bool {
	return value != nil && string(value) != `""` && string(value) != "null"
}
