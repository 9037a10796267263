package jsontext

// DecodePair works like Decode for two similar texts, such as an object before and after an update. If the
// second text repeats an object, array or string of the first text at the same place, both results share the
// value. Changing one result can therefore change the other.
func (d *Decoder) DecodePair(first, second []byte) (firstObject, secondObject map[string]any, err error) {
	p := d.acquireParser(first)
	defer d.releaseParser(p)
	p.pair.mode = pairRecords
	if firstObject, err = p.parseObject(); err != nil {
		return nil, nil, err
	}
	p.reset(second)
	p.pair.first = first
	p.pair.mode = pairShares
	p.pair.expected = recordedRange{end: len(p.pair.values)}
	secondObject, err = p.parseObject()
	return firstObject, secondObject, err
}

const (
	// maxRecorded limits the recorded values of the first text, and maxLookahead the search for a mark, so
	// that decoding unrelated texts costs little more than decoding them separately.
	maxRecorded  = 4096
	maxLookahead = 8
)

// pairMode is the role of a parser in DecodePair.
type pairMode uint8

const (
	pairNone    pairMode = iota
	pairRecords          // parses the first text and records its values
	pairShares           // parses the second text and reuses values of the first
)

type pairState struct {
	mode  pairMode
	first []byte
	// values are the recorded values of the first text: a parent comes before its children. maxValues is
	// the largest length of values so far.
	values    []recordedValue
	maxValues int
	// expected are the recorded values that the current object or array is expected to repeat.
	expected recordedRange
}

// recordedValue is an object, an array, or a string that is not interned.
type recordedValue struct {
	key        string // in an object
	value      any
	start, end uint32 // range of its text
	index      int32  // in an array
	next       int32  // index of the value after it and all inside it
}

// recordedRange is the range of recorded values directly in one object or array. That at the cursor is next.
type recordedRange struct{ cursor, end int }

// parseElement parses the value at pos. key is its key in an object, index its index in an array.
func (p *parser) parseElement(key string, index int) any {
	switch p.pair.mode {
	case pairRecords:
		return p.parseRecorded(key, index)
	case pairShares:
		return p.parseShared(key, index)
	}
	return p.parseValue()
}

func (p *parser) parseRecorded(key string, index int) any {
	c := p.peek()
	t := &p.pair
	if c != '"' && c != '{' && c != '[' || len(t.values) >= maxRecorded {
		return p.parseValue()
	}
	start, unsharedBefore, recordIndex := p.pos, p.unsharedStrings, len(t.values)
	t.values = append(t.values, recordedValue{key: key, index: int32(index), start: uint32(start)})
	t.maxValues = max(t.maxValues, len(t.values))
	value := p.parseValue()
	if c == '"' && p.unsharedStrings == unsharedBefore {
		t.values = t.values[:recordIndex]
		return value
	}
	recorded := &t.values[recordIndex]
	recorded.end, recorded.next, recorded.value = uint32(p.pos), int32(len(t.values)), value
	return value
}

// parseShared returns the value at the same place of the first text if it has the same text, and parses it
// otherwise. Comparing a prefix suffices, because brackets and quotes end a value.
func (p *parser) parseShared(key string, index int) any {
	c := p.peek()
	if c != '"' && c != '{' && c != '[' {
		return p.parseValue()
	}
	t := &p.pair
	at := t.find(key, index)
	if at < 0 {
		return p.parseExpecting(recordedRange{})
	}
	recorded := &t.values[at]
	text := t.first[recorded.start:recorded.end]
	t.expected.cursor = int(recorded.next)
	if rest := p.data[p.pos:]; len(rest) >= len(text) && string(rest[:len(text)]) == string(text) {
		p.pos += len(text)
		return recorded.value
	}
	return p.parseExpecting(recordedRange{cursor: at + 1, end: int(recorded.next)})
}

// parseExpecting parses the value at pos, whose content is expected to repeat the recorded values.
func (p *parser) parseExpecting(expected recordedRange) any {
	outer := p.pair.expected
	p.pair.expected = expected
	value := p.parseValue()
	p.pair.expected = outer
	return value
}

// find returns the index of the recorded value with the same key or array index, or -1.
func (t *pairState) find(key string, index int) int {
	at := t.expected.cursor
	for range maxLookahead {
		if at >= t.expected.end {
			break
		}
		m := &t.values[at]
		if m.index == int32(index) && m.key == key {
			return at
		}
		at = int(m.next)
	}
	return -1
}

func (t *pairState) reset() {
	if t.mode == pairNone {
		return
	}
	clear(t.values[:t.maxValues])
	*t = pairState{values: t.values[:0]}
}
