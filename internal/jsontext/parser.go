package jsontext

import "maps"

// maxDepth is how deep objects and arrays may nest, as with sigs.k8s.io/json.
const maxDepth = 10000

// parser reads one document. Elements wait on a stack until their array ends, so that the slice can be made
// with the right size.
type parser struct {
	decoder  *Decoder
	data     []byte
	pos      int
	depth    int
	failure  string // why the document is refused; "" while it is not
	failedAt int
	elements []any
	text     []byte    // a string without its escapes
	lastKey  *interned // the last shared key
	// how many strings were not shared although short: what holds one has not occurred lately
	fresh int
	owned int  // how many strings were not shared, whatever their length
	twin  twin // of two texts that are read together
}

func (p *parser) fail(reason string) {
	if p.failure == "" {
		p.failure, p.failedAt = reason, p.pos
	}
}

func (p *parser) err() error {
	if p.failure == "" {
		return nil
	}
	return &SyntaxError{Offset: p.failedAt, Reason: p.failure}
}

// document reads all data as one value. For an object it also returns the number of its members, repeated
// keys counted each time; with a failure the value is nil.
func (p *parser) document() (value any, members int) {
	if p.next() == '{' {
		value, members = p.object(0)
	} else {
		value = p.value()
	}
	if p.failure == "" && p.next() != 0 {
		p.fail("data after the value")
	}
	if p.failure == "" && p.pos < len(p.data) {
		p.fail("a zero byte after the value")
	}
	if p.failure != "" {
		return nil, 0
	}
	return value, members
}

// next skips white space and returns the byte that follows without taking it, or 0 at the end.
func (p *parser) next() byte {
	if p.pos < len(p.data) && p.data[p.pos] > ' ' { // API servers send no white space
		return p.data[p.pos]
	}
	return p.afterSpace()
}

func (p *parser) afterSpace() byte {
	if p.pos = Space(p.data, p.pos); p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// value reads the value at pos.
func (p *parser) value() any {
	switch c := p.next(); c {
	case '"':
		return p.stringValue()
	case '{', '[':
		return p.container()
	case 't':
		p.literal("true")
		return true
	case 'f':
		p.literal("false")
		return false
	case 'n':
		p.literal("null")
		return nil
	default:
		if c == '-' || c-'0' <= 9 {
			return p.number()
		}
		p.unexpected("a value")
		return nil
	}
}

// unexpected fails because something else than what stands at pos was expected.
func (p *parser) unexpected(expected string) {
	if p.pos >= len(p.data) {
		p.fail("the end of the data in place of " + expected)
	} else {
		p.fail("not " + expected)
	}
}

func (p *parser) literal(word string) {
	if end := p.pos + len(word); end <= len(p.data) && string(p.data[p.pos:end]) == word {
		p.pos = end
		return
	}
	p.unexpected("a value")
}

// enter takes the bracket that opens an object or array.
func (p *parser) enter() {
	p.pos++
	if p.depth++; p.depth > maxDepth {
		p.fail("nested too deeply")
	}
}

// more takes what follows a member or element: a comma (true) or the closing bracket (false).
func (p *parser) more(closing byte) bool {
	switch p.next() {
	case ',':
		p.pos++
		return true
	case closing:
		p.pos++
	default:
		p.unexpected("a comma or the end of an object or array")
	}
	return false
}

// container reads the object or array at pos, by copying it if its text is known.
func (p *parser) container() any {
	start := p.pos
	slot, ok := templateSlot(p.data[start:], p.lastKey.slot)
	if !ok || p.data[start+1] == p.data[start]+2 { // {} and [] are made faster than found
		return p.parseContainer(0)
	}
	place := &p.decoder.templates.slots[slot]
	if t := place.find(p.data[start:]); t != nil && p.depth+t.nesting <= maxDepth {
		p.pos += len(t.text)
		return t.copy()
	}
	fresh := p.fresh
	value := p.parseContainer(int(place.size.Load()))
	if p.failure != "" {
		return nil
	}
	if object, ok := value.(map[string]any); ok {
		place.learnSize(len(object))
	}
	if p.fresh == fresh {
		p.decoder.templates.learn(slot, p.data[start:p.pos], value)
	}
	return value
}

func (p *parser) parseContainer(size int) any {
	if p.data[p.pos] == '[' {
		return p.array()
	}
	object, _ := p.object(size)
	return object
}

// object reads the object at pos and returns how many members it has in the text, besides. Its map is made
// for as many as size says.
func (p *parser) object(size int) (any, int) {
	p.enter()
	object, members := make(map[string]any, size), 0
	if p.next() == '}' {
		p.pos++
	} else {
		for more := true; more && p.failure == ""; more = p.more('}') {
			key := p.key()
			object[key] = p.element(key, 0)
			members++
		}
	}
	if p.failure != "" {
		return nil, 0
	}
	p.depth--
	if size > 0 && (len(object) <= smallMap || 2*len(object) < size) { // a wrong guess must not cost memory
		right := make(map[string]any, len(object))
		maps.Copy(right, object)
		object = right
	}
	return object, members
}

// key reads the key at pos and the colon after it.
func (p *parser) key() string {
	if p.next() != '"' {
		p.unexpected("a key")
		return ""
	}
	if shared := guess(&p.lastKey.next, p.data[p.pos+1:]); shared != nil {
		p.pos += len(shared.text) + len(`""`)
		p.lastKey = shared
		p.colon()
		return shared.text
	}
	text := p.quoted()
	var key string
	if shared := p.decoder.strings.share(text); shared != nil {
		key = shared.text
		shared.follow(&p.lastKey.next, p.lastKey)
		p.lastKey = shared
	} else {
		key = p.own(text)
	}
	p.colon()
	return key
}

func (p *parser) colon() {
	switch {
	case p.failure != "":
	case p.next() == ':':
		p.pos++
	default:
		p.unexpected("a colon")
	}
}

// array reads the array at pos.
func (p *parser) array() any {
	p.enter()
	base := len(p.elements)
	if p.next() == ']' {
		p.pos++
	} else {
		for more := true; more && p.failure == ""; more = p.more(']') {
			value := p.element("", len(p.elements)-base)
			p.elements = append(p.elements, value)
		}
	}
	if p.failure != "" {
		return nil
	}
	p.depth--
	array := make([]any, len(p.elements)-base)
	copy(array, p.elements[base:])
	p.elements = p.elements[:base]
	return array
}

// stringValue reads the string at pos as a value.
func (p *parser) stringValue() any {
	if shared := guess(&p.lastKey.usual, p.data[p.pos+1:]); shared != nil {
		p.pos += len(shared.text) + len(`""`)
		return shared.value
	}
	text := p.quoted()
	if shared := p.decoder.strings.share(text); shared != nil {
		shared.follow(&p.lastKey.usual, p.lastKey)
		return shared.value
	}
	return p.own(text)
}

// own returns text that is not shared, as a string of its own.
func (p *parser) own(text []byte) string {
	p.owned++
	if len(text) <= maxInterned {
		p.fresh++
	}
	return string(text)
}

// quoted reads the string at pos. The result is good until the next call and may be part of the data.
func (p *parser) quoted() []byte {
	start := p.pos + 1
	end, encoded := EncodedText(p.data, start)
	if end < 0 {
		p.pos = min(^end, len(p.data))
		p.fail(TextProblem(p.data, p.pos))
		return nil
	}
	p.pos = end
	text := p.data[start : end-1]
	if encoded {
		p.text = AppendText(p.text[:0], text)
		return p.text
	}
	return text
}

// number reads the number at pos: an int64 if it has neither a fraction nor an exponent and fits, and a
// float64 otherwise.
func (p *parser) number() any {
	start := p.pos
	end, form := Number(p.data, start)
	if end < 0 {
		p.pos = ^end
		p.unexpected([...]string{Integer: "a number", Fraction: "a fraction", Exponent: "an exponent"}[form])
		return nil
	}
	p.pos = end
	i, f, isInteger, ok := ParseNumber(p.data[start:end])
	switch {
	case !ok:
		p.fail("a number out of range")
		return nil
	case isInteger:
		return i
	default:
		return f
	}
}
