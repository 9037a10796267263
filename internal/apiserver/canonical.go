package apiserver

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// restoreCanonical stores an object without decoding it, and reports whether that was possible: its JSON must
// be in the form in which the storage keeps it, and the object must be new.
func (s *Storage) restoreCanonical(data []byte) bool {
	c := s.canonicalizers.Get().(*canonicalizer)
	defer s.canonicalizers.Put(c)
	if s.options.Stamp || !c.read(data, c.out[:0]) || string(c.kind) == definitionKind.Kind {
		return false
	}
	gv, err := schema.ParseGroupVersion(string(c.apiVersion))
	version, ok := parseVersion(string(c.resourceVersion))
	if err != nil || !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	into := s.mu.kinds[schema.GroupKind{Group: gv.Group, Kind: string(c.kind)}]
	if into == nil || into.typ.Version(gv.Version) == nil || into.typ.Namespaced != (len(c.namespace) > 0) {
		return false
	}
	key := objectKey(string(c.namespace), string(c.name))
	if key == "" || into.objects[key] != nil {
		return false
	}
	s.mu.version = max(s.mu.version+1, version)
	o := &object{key: key, stored: into.typ.Version(gv.Version).Name, labels: labelSet(c.labels)}
	s.setText(o, c.out)
	into.put(key, o)
	into.dropHistory(s.mu.version)
	return true
}

// canonicalizer copies the JSON of an object in one pass in the form in which the storage keeps it: without
// apiVersion, with sorted keys, and with strings and numbers as encoding/json writes them. It rejects any
// text that decoding and encoding could change.
type canonicalizer struct {
	src []byte
	pos int
	out []byte

	apiVersion, kind                 []byte
	namespace, name, resourceVersion []byte
	labels                           []byte // a labelSet
	named                            bool
	depth                            int
}

// maxDepth is the maximum depth of nested values.
const maxDepth = 500

// read copies the object into out, and reports whether that was possible.
func (c *canonicalizer) read(src, out []byte) bool {
	*c = canonicalizer{src: src, out: out, labels: c.labels[:0]}
	c.space()
	ok := c.object(c.topLevelMember)
	c.space()
	return ok && c.pos == len(c.src) && c.named && len(c.apiVersion) > 0 && len(c.kind) > 0 &&
		bytes.Count(c.apiVersion, []byte("/")) <= 1
}

// memberFunc copies the value of a key, and reports whether that was possible.
type memberFunc func(key []byte) bool

func (c *canonicalizer) space() {
	for c.pos < len(c.src) && (c.src[c.pos] == ' ' || c.src[c.pos] == '\n' || c.src[c.pos] == '\t' ||
		c.src[c.pos] == '\r') {
		c.pos++
	}
}

// at skips white space and the byte b, and reports whether b was there.
func (c *canonicalizer) at(b byte) bool {
	c.space()
	if c.pos < len(c.src) && c.src[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

// object copies an object with sorted keys.
func (c *canonicalizer) object(member memberFunc) bool {
	if c.depth++; c.depth > maxDepth || !c.at('{') {
		return false
	}
	defer func() { c.depth-- }()
	c.out = append(c.out, '{')
	empty := len(c.out)
	if c.at('}') {
		c.out = append(c.out, '}')
		return true
	}
	var last []byte
	for {
		before := len(c.out)
		if before > empty {
			c.out = append(c.out, ',')
		}
		c.space()
		key, ok := c.string()
		if !ok || last != nil && bytes.Compare(last, key) >= 0 || !c.at(':') {
			return false
		}
		last = key
		c.out = append(c.out, ':')
		value := len(c.out)
		if !member(key) {
			return false
		}
		if len(c.out) == value { // member has dropped it
			c.out = c.out[:before]
		}
		if c.at('}') {
			c.out = append(c.out, '}')
			return true
		}
		if !c.at(',') {
			return false
		}
	}
}

func (c *canonicalizer) array(element func() bool) bool {
	if c.depth++; c.depth > maxDepth || !c.at('[') {
		return false
	}
	defer func() { c.depth-- }()
	c.out = append(c.out, '[')
	if c.at(']') {
		c.out = append(c.out, ']')
		return true
	}
	for {
		if !element() {
			return false
		}
		if c.at(']') {
			c.out = append(c.out, ']')
			return true
		}
		if !c.at(',') {
			return false
		}
		c.out = append(c.out, ',')
	}
}

// topLevelMember copies a top-level field.
func (c *canonicalizer) topLevelMember(key []byte) (ok bool) {
	switch string(key) {
	case "apiVersion":
		before := len(c.out)
		c.apiVersion, ok = c.string()
		c.out = c.out[:before]
		return ok
	case "kind":
		c.kind, ok = c.string()
		return ok
	case "metadata":
		return c.object(c.metadata)
	}
	return c.value(key)
}

// metadata copies a field of the metadata.
func (c *canonicalizer) metadata(key []byte) (ok bool) {
	switch string(key) {
	case "name":
		c.name, ok = c.string()
		c.named = len(c.name) > 0 && bytes.IndexByte(c.name, '/') < 0
		return ok
	case "namespace":
		c.namespace, ok = c.string()
		return ok && bytes.IndexByte(c.namespace, '/') < 0
	case "resourceVersion":
		c.resourceVersion, ok = c.string()
		return ok
	case "uid", "generateName", "selfLink":
		_, ok = c.string()
		return ok
	case "creationTimestamp", "deletionTimestamp":
		return c.copyTime()
	case "generation", "deletionGracePeriodSeconds":
		c.space()
		return c.integer()
	case "labels":
		return c.object(func(key []byte) bool {
			value, ok := c.string()
			c.labels = appendLabel(appendLabel(c.labels, key), value)
			return ok
		})
	case "annotations":
		return c.object(c.stringField)
	case "finalizers":
		return c.array(func() bool { return c.stringField(nil) })
	case "ownerReferences":
		return c.array(func() bool { return c.object(c.ownerMember) })
	case "managedFields":
		return c.array(func() bool { return c.object(c.managedFieldsMember) })
	}
	return c.value(key)
}

func (c *canonicalizer) stringField([]byte) bool { _, ok := c.string(); return ok }

func (c *canonicalizer) ownerMember(key []byte) bool {
	switch string(key) {
	case "apiVersion", "kind", "name", "uid":
		return c.stringField(key)
	case "controller", "blockOwnerDeletion":
		c.space()
		return c.word("true") || c.word("false")
	}
	return false
}

func (c *canonicalizer) managedFieldsMember(key []byte) bool {
	switch string(key) {
	case "manager", "operation", "apiVersion", "fieldsType", "subresource":
		return c.stringField(key)
	case "time":
		return c.copyTime()
	case "fieldsV1":
		return c.object(c.value)
	}
	return false
}

// copyTime copies a time in the form of API servers.
func (c *canonicalizer) copyTime() bool {
	text, ok := c.string()
	const form = "0000-00-00T00:00:00Z"
	if !ok || len(text) != len(form) {
		return false
	}
	for i := range len(form) {
		if digit := text[i] >= '0' && text[i] <= '9'; form[i] == '0' != digit || !digit &&
			text[i] != form[i] {
			return false
		}
	}
	_, err := time.Parse(time.RFC3339, string(text))
	return err == nil
}

func (c *canonicalizer) value([]byte) bool {
	c.space()
	if c.pos >= len(c.src) {
		return false
	}
	switch c.src[c.pos] {
	case '{':
		return c.object(c.value)
	case '[':
		return c.array(func() bool { return c.value(nil) })
	case '"':
		_, ok := c.text()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.integer()
}

func (c *canonicalizer) word(word string) bool {
	if !bytes.HasPrefix(c.src[c.pos:], []byte(word)) {
		return false
	}
	c.pos += len(word)
	c.out = append(c.out, word...)
	return true
}

// integer copies a number of at most 18 digits, which fits into an int64.
func (c *canonicalizer) integer() bool {
	begin := c.pos
	if c.pos < len(c.src) && c.src[c.pos] == '-' {
		c.pos++
	}
	first := c.pos
	for c.pos < len(c.src) && c.src[c.pos] >= '0' && c.src[c.pos] <= '9' {
		c.pos++
	}
	digits := c.pos - first
	if digits == 0 || digits > 18 || c.src[first] == '0' && (digits > 1 || first > begin) {
		return false
	}
	if c.pos < len(c.src) && (c.src[c.pos] == '.' || c.src[c.pos]|0x20 == 'e') {
		return false
	}
	c.out = append(c.out, c.src[begin:c.pos]...)
	return true
}

// string is text for strings without escapes.
func (c *canonicalizer) string() ([]byte, bool) {
	c.space()
	text, ok := c.text()
	return text, ok && bytes.IndexByte(text, '\\') < 0
}

// unescapedBytes are the ASCII bytes that need no escape in a string.
var unescapedBytes = func() (table [256]bool) {
	for b := ' '; b < 0x7f; b++ {
		table[b] = true
	}
	for _, b := range `"\<>&` {
		table[b] = false
	}
	return table
}()

// text copies a string and returns the text between its quotes. It accepts only the escapes that
// encoding/json writes.
func (c *canonicalizer) text() ([]byte, bool) {
	if c.pos >= len(c.src) || c.src[c.pos] != '"' {
		return nil, false
	}
	begin := c.pos
	for i := begin + 1; i < len(c.src); i++ {
		switch b := c.src[i]; {
		case unescapedBytes[b]:
		case b == '"':
			c.pos = i + 1
			c.out = append(c.out, c.src[begin:c.pos]...)
			return c.src[begin+1 : i], true
		case b == '\\' && i+1 < len(c.src) && slices.Contains([]byte(`"\nrt`), c.src[i+1]):
			i++
		case b == '\\' && i+5 < len(c.src) && slices.Contains([]string{`u003c`, `u003e`, `u0026`},
			string(c.src[i+1:i+6])):
			i += 5
		case b >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(c.src[i:])
			if r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
				return nil, false
			}
			i += size - 1
		default:
			return nil, false
		}
	}
	return nil, false
}
