package jsontext

import (
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
)

// ErrUnusual is returned, possibly wrapped, for valid JSON in a form that DecodeList leaves to a general
// decoder.
var ErrUnusual = errors.New("not the usual form")

// SyntaxError says why data is not the JSON of an object.
type SyntaxError struct {
	// Offset is the number of bytes before the one that is wrong.
	Offset int
	// Reason says what is wrong there.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at offset %d", e.Reason, e.Offset)
}

// Decoder decodes objects. It is safe for concurrent use; use one for many objects, because it remembers the
// strings they have in common.
type Decoder struct {
	strings   internTable
	templates templateTable
	parsers   sync.Pool
}

// NewDecoder returns a Decoder.
func NewDecoder() *Decoder {
	d := &Decoder{}
	d.templates.seed = maphash.MakeSeed()
	d.parsers.New = func() any { return &parser{decoder: d} }
	return d
}

// Decode returns the object that data holds. The JSON null is a nil map, any other value than an object an
// error.
func (d *Decoder) Decode(data []byte) (map[string]any, error) {
	p := d.parser(data)
	defer d.release(p)
	return p.whole()
}

// whole reads all data as one object.
func (p *parser) whole() (map[string]any, error) {
	value, _ := p.document()
	switch object := value.(type) {
	case map[string]any:
		return object, nil
	case nil:
		return nil, p.err()
	default:
		return nil, &SyntaxError{Reason: fmt.Sprintf("a %T in place of an object", value)}
	}
}

// DecodeValue returns the value that data holds, of any type.
func (d *Decoder) DecodeValue(data []byte) (any, error) {
	p := d.parser(data)
	defer d.release(p)
	value, _ := p.document()
	return value, p.err()
}

// DecodeList returns the items of a list, and the list without them. A list that has a key twice at its top
// level is ErrUnusual, as is one whose items are not an array of objects.
func (d *Decoder) DecodeList(data []byte) (list map[string]any, items []map[string]any, err error) {
	p := d.parser(data)
	defer d.release(p)
	value, members := p.document()
	if err := p.err(); err != nil {
		return nil, nil, err
	}
	list, ok := value.(map[string]any)
	if !ok || len(list) != members || shadowed(list) {
		return nil, nil, ErrUnusual
	}
	elements, ok := list["items"].([]any)
	if !ok {
		return nil, nil, ErrUnusual
	}
	delete(list, "items")
	items = make([]map[string]any, len(elements))
	for i, element := range elements {
		if items[i], ok = element.(map[string]any); !ok {
			return nil, nil, ErrUnusual
		}
	}
	return list, items, nil
}

func (d *Decoder) parser(data []byte) *parser {
	p := d.parsers.Get().(*parser)
	p.begin(data)
	d.strings.documents.Add(1)
	return p
}

// begin makes p read data from its beginning.
func (p *parser) begin(data []byte) {
	p.data, p.pos, p.depth, p.failure, p.lastKey = data, 0, 0, "", &p.decoder.strings.start
}

// maxPooledStack is the number of elements from which on a parser is left to the garbage
// collector, so that one huge object does not cost its memory for ever.
const maxPooledStack = 1 << 16

func (d *Decoder) release(p *parser) {
	if cap(p.elements) > maxPooledStack || cap(p.text) > maxPooledStack {
		return
	}
	// Nothing of an object may stay alive here, neither above the top of the stack nor below it, where a
	// failure leaves what had been read.
	p.elements, p.data = p.elements[:0], nil
	clear(p.elements[:cap(p.elements)])
	p.twin.forget()
	d.parsers.Put(p)
}

// Shadows reports whether a key at the top level is "kind" or "apiVersion" but for upper and lower case. The
// stock serializer finds the kind of an object by a struct, for which such a key counts as well, and keeps
// the object as a map, where it does not. An object with one is left to it.
func Shadows(key string) bool {
	if len(key) < len("kind") || len(key) > 2*len("apiVersion") {
		return false
	}
	switch c := key[0]; {
	case c == 'k' || c == 'K' || c >= 0x80: // also the sign of Kelvin
		return key != "kind" && strings.EqualFold(key, "kind")
	case c == 'a' || c == 'A':
		return key != "apiVersion" && strings.EqualFold(key, "apiVersion")
	}
	return false
}

// shadowed reports whether an object has such a key.
func shadowed(object map[string]any) bool {
	for key := range object {
		if Shadows(key) {
			return true
		}
	}
	return false
}
