package jsontext

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
)

// SyntaxError describes why data is not the JSON of an object.
type SyntaxError struct {
	// Offset is the number of bytes before the error.
	Offset int
	// Reason describes the error.
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at offset %d", e.Reason, e.Offset) }

// Decoder decodes objects. It is safe for concurrent use. It shares the common strings of its objects.
type Decoder struct {
	strings   internTable
	templates templateTable
	parsers   sync.Pool
}

func NewDecoder() *Decoder {
	d := &Decoder{}
	d.templates.seed = maphash.MakeSeed()
	d.parsers.New = func() any { return &parser{decoder: d} }
	return d
}

// Decode returns the object in data. JSON null is decoded as a nil map; other values are errors.
func (d *Decoder) Decode(data []byte) (map[string]any, error) {
	p := d.acquireParser(data)
	defer d.releaseParser(p)
	return p.parseObject()
}

func (p *parser) parseObject() (map[string]any, error) {
	value := p.parseDocument()
	switch object := value.(type) {
	case map[string]any:
		return object, nil
	case nil:
		return nil, p.err()
	default:
		return nil, &SyntaxError{Reason: fmt.Sprintf("want an object, not a %T", value)}
	}
}

// DecodeValue returns the value in data, of any type.
func (d *Decoder) DecodeValue(data []byte) (any, error) {
	p := d.acquireParser(data)
	defer d.releaseParser(p)
	value := p.parseDocument()
	return value, p.err()
}

func (d *Decoder) acquireParser(data []byte) *parser {
	p := d.parsers.Get().(*parser)
	p.reset(data)
	d.strings.documents.Add(1)
	return p
}

func (p *parser) reset(data []byte) {
	p.data, p.pos, p.depth, p.failure, p.lastKey = data, 0, 0, "", &p.decoder.strings.start
}

// maxPooledCapacity is the capacity above which the memory of a parser is not pooled.
const maxPooledCapacity = 1 << 16

func (d *Decoder) releaseParser(p *parser) {
	if cap(p.elements) > maxPooledCapacity || cap(p.text) > maxPooledCapacity {
		return
	}
	// Clear the whole capacity, so that the pool does not retain objects. After a failure, elements remain
	// below the top of the stack.
	p.elements, p.data = p.elements[:0], nil
	clear(p.elements[:cap(p.elements)])
	p.pair.reset()
	d.parsers.Put(p)
}

// ShadowsTypeMeta reports whether a top-level key equals "kind" or "apiVersion" except for case. The
// stock serializer reads the kind of an object without regard to case, but decodes the object into a
// map with exact keys. Callers leave objects with such a key to the stock serializer.
func ShadowsTypeMeta(key string) bool {
	if len(key) < len("kind") || len(key) > 2*len("apiVersion") {
		return false
	}
	switch c := key[0]; {
	case c == 'k' || c == 'K' || c >= 0x80: // also the Kelvin sign
		return key != "kind" && strings.EqualFold(key, "kind")
	case c == 'a' || c == 'A':
		return key != "apiVersion" && strings.EqualFold(key, "apiVersion")
	}
	return false
}
