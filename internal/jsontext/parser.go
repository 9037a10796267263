package jsontext

import "maps"

// maxDepth limits the nesting of objects and arrays, as in sigs.k8s.io/json.
const maxDepth = 10000

// parser parses one document. Elements are on a stack until their array ends: slices get their final size.
type parser struct {
	decoder       *Decoder
	data          []byte
	pos           int
	depth         int
	failure       string // reason of the syntax error; "" without one
	failureOffset int
	elements      []any
	text          []byte          // scratch for unescaping
	lastKey       *internedString // the last shared key
	// number of short strings that were not shared; containers with such strings do not recur
	unsharedShort   int
	unsharedStrings int       // number of strings that were not shared, of any length
	pair            pairState // state of DecodePair
}

func (p *parser) fail(reason string) {
	if p.failure == "" {
		p.failure, p.failureOffset = reason, p.pos
	}
}

func (p *parser) err() error {
	if p.failure == "" {
		return nil
	}
	return &SyntaxError{Offset: p.failureOffset, Reason: p.failure}
}

// parseDocument parses all data as one value. After a failure the value is nil.
func (p *parser) parseDocument() (value any) {
	if p.peek() == '{' {
		value = p.parseMembers(0)
	} else {
		value = p.parseValue()
	}
	if p.failure == "" && p.peek() != 0 {
		p.fail("data after the value")
	}
	if p.failure == "" && p.pos < len(p.data) {
		p.fail("a zero byte after the value")
	}
	if p.failure != "" {
		return nil
	}
	return value
}

// peek skips white space and returns the next byte without consuming it, or 0 at the end.
func (p *parser) peek() byte {
	if p.pos < len(p.data) && p.data[p.pos] > ' ' { // API servers send no white space
		return p.data[p.pos]
	}
	return p.peekAfterSpace()
}

func (p *parser) peekAfterSpace() byte {
	if p.pos = SkipSpace(p.data, p.pos); p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

// parseValue parses the value at pos.
func (p *parser) parseValue() any {
	switch c := p.peek(); c {
	case '"':
		return p.parseString()
	case '{', '[':
		return p.copyOrParseContainer()
	case 't':
		p.parseLiteral("true")
		return true
	case 'f':
		p.parseLiteral("false")
		return false
	case 'n':
		p.parseLiteral("null")
		return nil
	default:
		if c == '-' || c-'0' <= 9 {
			return p.parseNumber()
		}
		p.failExpected("a value")
		return nil
	}
}

// failExpected fails because the data at pos is not the expected token.
func (p *parser) failExpected(expected string) {
	if p.pos >= len(p.data) {
		p.fail("unexpected end of the data, want " + expected)
	} else {
		p.fail("want " + expected)
	}
}

func (p *parser) parseLiteral(word string) {
	if end := p.pos + len(word); end <= len(p.data) && string(p.data[p.pos:end]) == word {
		p.pos = end
		return
	}
	p.failExpected("a value")
}

// enterContainer consumes an opening bracket.
func (p *parser) enterContainer() {
	p.pos++
	if p.depth++; p.depth > maxDepth {
		p.fail("nested too deeply")
	}
}

// consumeComma consumes a comma and returns true, or consumes the closing bracket and returns false.
func (p *parser) consumeComma(closing byte) bool {
	switch p.peek() {
	case ',':
		p.pos++
		return true
	case closing:
		p.pos++
	default:
		p.failExpected("a comma or the end of an object or array")
	}
	return false
}

// copyOrParseContainer parses the object or array at pos. It copies a template with the same text.
func (p *parser) copyOrParseContainer() any {
	start := p.pos
	slot, ok := templateSlot(p.data[start:], p.lastKey.slot)
	if !ok || p.data[start+1] == p.data[start]+2 { // creating {} and [] is faster than a lookup
		return p.parseContainer(0)
	}
	slotState := &p.decoder.templates.slots[slot]
	if t := slotState.find(p.data[start:]); t != nil && p.depth+t.nesting <= maxDepth {
		p.pos += len(t.text)
		return t.copy()
	}
	unshared := p.unsharedShort
	value := p.parseContainer(int(slotState.size.Load()))
	if p.failure != "" {
		return nil
	}
	if object, ok := value.(map[string]any); ok {
		slotState.learnSize(len(object))
	}
	if p.unsharedShort == unshared {
		p.decoder.templates.learn(slot, p.data[start:p.pos], value)
	}
	return value
}

func (p *parser) parseContainer(size int) any {
	if p.data[p.pos] == '[' {
		return p.parseArray()
	}
	return p.parseMembers(size)
}

// parseMembers parses the object at pos. size is the expected number of members.
func (p *parser) parseMembers(size int) any {
	p.enterContainer()
	object := make(map[string]any, size)
	if p.peek() == '}' {
		p.pos++
	} else {
		for more := true; more && p.failure == ""; more = p.consumeComma('}') {
			key := p.parseKey()
			object[key] = p.parseElement(key, 0)
		}
	}
	if p.failure != "" {
		return nil
	}
	p.depth--
	// a wrong estimate must not waste memory
	if size > 0 && (len(object) <= smallMapSize || 2*len(object) < size) {
		resized := make(map[string]any, len(object))
		maps.Copy(resized, object)
		object = resized
	}
	return object
}

// parseKey parses the key and colon at pos.
func (p *parser) parseKey() string {
	if p.peek() != '"' {
		p.failExpected("a key")
		return ""
	}
	if shared := predictedString(&p.lastKey.nextKey, p.data[p.pos+1:]); shared != nil {
		p.pos += len(shared.text) + len(`""`)
		p.lastKey = shared
		p.consumeColon()
		return shared.text
	}
	text := p.parseQuoted()
	var key string
	if shared := p.decoder.strings.intern(text); shared != nil {
		key = shared.text
		shared.storeLink(&p.lastKey.nextKey, p.lastKey)
		p.lastKey = shared
	} else {
		key = p.newString(text)
	}
	p.consumeColon()
	return key
}

func (p *parser) consumeColon() {
	switch {
	case p.failure != "":
	case p.peek() == ':':
		p.pos++
	default:
		p.failExpected("a colon")
	}
}

func (p *parser) parseArray() any {
	p.enterContainer()
	base := len(p.elements)
	if p.peek() == ']' {
		p.pos++
	} else {
		for more := true; more && p.failure == ""; more = p.consumeComma(']') {
			value := p.parseElement("", len(p.elements)-base)
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

func (p *parser) parseString() any {
	if shared := predictedString(&p.lastKey.lastValue, p.data[p.pos+1:]); shared != nil {
		p.pos += len(shared.text) + len(`""`)
		return shared.value
	}
	text := p.parseQuoted()
	if shared := p.decoder.strings.intern(text); shared != nil {
		shared.storeLink(&p.lastKey.lastValue, p.lastKey)
		return shared.value
	}
	return p.newString(text)
}

func (p *parser) newString(text []byte) string {
	p.unsharedStrings++
	if len(text) <= maxInternedLength {
		p.unsharedShort++
	}
	return string(text)
}

// parseQuoted parses the string at pos. The result is valid until the next call and may be part of the data.
func (p *parser) parseQuoted() []byte {
	start := p.pos + 1
	end, encoded := ScanAnyString(p.data, start)
	if end < 0 {
		p.pos = min(^end, len(p.data))
		p.fail(StringProblem(p.data, p.pos))
		return nil
	}
	p.pos = end
	text := p.data[start : end-1]
	if encoded {
		p.text = AppendUnescaped(p.text[:0], text)
		return p.text
	}
	return text
}

// parseNumber returns an int64 if the number fits and has no fraction or exponent, otherwise a float64.
func (p *parser) parseNumber() any {
	start := p.pos
	end, numberForm := ScanNumber(p.data, start)
	if end < 0 {
		p.pos = ^end
		p.failExpected([...]string{Integer: "a number", Fraction: "a fraction", Exponent: "an exponent"}[numberForm])
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
