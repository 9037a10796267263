package readapi

import (
	"bytes"
	"slices"
	"time"
	"unicode/utf8"
)

// canonical copies the JSON of an object in the form in which objects are kept, without its apiVersion, as
// long as the text shows that encoding the decoded object would give the same: keys in order, strings and
// numbers written as encoding/json does, metadata of the form that clients insist on. What it is not sure of
// takes the long way. One pass tells all that storing an object needs to know.
type canonical struct {
	src []byte
	pos int
	out []byte

	apiVersion, kind                 []byte
	namespace, name, resourceVersion []byte
	labels                           []byte // a labelSet
	named                            bool
	depth                            int
}

// maxCanonical is how deeply objects are nested at most that are read here.
const maxCanonical = 500

// read copies the object, and reports whether it could.
func (c *canonical) read(src, out []byte) bool {
	*c = canonical{src: src, out: out, labels: c.labels[:0]}
	c.space()
	ok := c.object(c.top)
	c.space()
	return ok && c.pos == len(c.src) && c.named && len(c.apiVersion) > 0 && len(c.kind) > 0 &&
		bytes.Count(c.apiVersion, []byte("/")) <= 1
}

// memberFunc reads the value of a key, and reports whether it could.
type memberFunc func(key []byte) bool

func (c *canonical) space() {
	for c.pos < len(c.src) && (c.src[c.pos] == ' ' || c.src[c.pos] == '\n' || c.src[c.pos] == '\t' ||
		c.src[c.pos] == '\r') {
		c.pos++
	}
}

// at reports whether a byte comes next, behind white space, and passes over it.
func (c *canonical) at(b byte) bool {
	c.space()
	if c.pos < len(c.src) && c.src[c.pos] == b {
		c.pos++
		return true
	}
	return false
}

// object copies an object whose keys are in order.
func (c *canonical) object(member memberFunc) bool {
	if c.depth++; c.depth > maxCanonical || !c.at('{') {
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
		if len(c.out) == value { // it is left out
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

// array copies an array.
func (c *canonical) array(element func() bool) bool {
	if c.depth++; c.depth > maxCanonical || !c.at('[') {
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

// top reads a field of the object.
func (c *canonical) top(key []byte) (ok bool) {
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

// metadata reads a field of the metadata.
func (c *canonical) metadata(key []byte) (ok bool) {
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
		return c.moment()
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
		return c.array(func() bool { return c.object(c.owner) })
	case "managedFields":
		return c.array(func() bool { return c.object(c.managed) })
	}
	return c.value(key)
}

func (c *canonical) stringField([]byte) bool { _, ok := c.string(); return ok }

func (c *canonical) owner(key []byte) bool {
	switch string(key) {
	case "apiVersion", "kind", "name", "uid":
		return c.stringField(key)
	case "controller", "blockOwnerDeletion":
		c.space()
		return c.word("true") || c.word("false")
	}
	return false
}

func (c *canonical) managed(key []byte) bool {
	switch string(key) {
	case "manager", "operation", "apiVersion", "fieldsType", "subresource":
		return c.stringField(key)
	case "time":
		return c.moment()
	case "fieldsV1":
		return c.object(c.value)
	}
	return false
}

// moment reads a time as API servers write it.
func (c *canonical) moment() bool {
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

// value reads any value.
func (c *canonical) value([]byte) bool {
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

func (c *canonical) word(word string) bool {
	if !bytes.HasPrefix(c.src[c.pos:], []byte(word)) {
		return false
	}
	c.pos += len(word)
	c.out = append(c.out, word...)
	return true
}

// integer reads a number that int64 holds for certain.
func (c *canonical) integer() bool {
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

// string is text of a string without escapes.
func (c *canonical) string() ([]byte, bool) {
	c.space()
	text, ok := c.text()
	return text, ok && bytes.IndexByte(text, '\\') < 0
}

// plain are the bytes of ASCII that stand for themselves in a string.
var plain = func() (table [256]bool) {
	for b := ' '; b < 0x7f; b++ {
		table[b] = true
	}
	for _, b := range `"\<>&` {
		table[b] = false
	}
	return table
}()

// text copies a string, and returns what is between its quotes. Of escapes it takes those that encoding/json
// writes.
func (c *canonical) text() ([]byte, bool) {
	if c.pos >= len(c.src) || c.src[c.pos] != '"' {
		return nil, false
	}
	begin := c.pos
	for i := begin + 1; i < len(c.src); i++ {
		switch b := c.src[i]; {
		case plain[b]:
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
