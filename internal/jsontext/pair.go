package jsontext

// DecodePair is Decode for two texts that are mostly the same, as those of an object before and after an
// update. Where the second one repeats, at the same place, the text of an object, an array or a string that
// the first one has, its result holds the very value that the first one's holds, and costs a comparison. So
// whoever changes one of the results may change both.
func (d *Decoder) DecodePair(first, second []byte) (one, other map[string]any, err error) {
	p := d.parser(first)
	defer d.release(p)
	p.twin.mode = twinRecords
	if one, err = p.whole(); err != nil {
		return nil, nil, err
	}
	p.begin(second)
	p.twin.first = first
	p.twin.mode = twinShares
	p.twin.level = level{end: len(p.twin.marks)}
	if other, err = p.whole(); err != nil {
		return nil, nil, err
	}
	return one, other, nil
}

const (
	// maxMarks bounds what is remembered of the first of two texts, and maxAhead how far a mark is searched
	// for: a text that has nothing in common with the first one costs little more than by itself.
	maxMarks = 4096
	maxAhead = 8
)

// twinMode says what a parser does besides parsing.
type twinMode uint8

const (
	twinNone    twinMode = iota
	twinRecords          // it reads the first of two texts, and remembers what values it has
	twinShares           // it reads the second one, and takes the values of the first
)

// twin is what a parser knows of the first of two texts.
type twin struct {
	mode  twinMode
	first []byte
	// marks are the values of the first text, each before those within it, and most how many there were at
	// once.
	marks []mark
	most  int
	// level is where the marks of the object or array at hand are.
	level level
}

// mark is an object, an array, or a string that is not shared with other objects anyway.
type mark struct {
	key        string // in an object
	value      any
	start, end uint32 // of its text
	index      int32  // in an array
	next       int32  // the mark after it and all within it
}

// level is the marks of what is directly in one object or array: the one at the cursor is expected next.
type level struct{ cursor, end int }

// element reads the value at pos, which stands under key in an object, or at index in an array.
func (p *parser) element(key string, index int) any {
	switch p.twin.mode {
	case twinRecords:
		return p.record(key, index)
	case twinShares:
		return p.shared(key, index)
	}
	return p.value()
}

// record reads the value and marks it.
func (p *parser) record(key string, index int) any {
	c := p.next()
	t := &p.twin
	if c != '"' && c != '{' && c != '[' || len(t.marks) >= maxMarks {
		return p.value()
	}
	start, owned, at := p.pos, p.owned, len(t.marks)
	t.marks = append(t.marks, mark{key: key, index: int32(index), start: uint32(start)})
	t.most = max(t.most, len(t.marks))
	value := p.value()
	if c == '"' && p.owned == owned {
		t.marks = t.marks[:at]
		return value
	}
	m := &t.marks[at]
	m.end, m.next, m.value = uint32(p.pos), int32(len(t.marks)), value
	return value
}

// shared returns the value that stands at the same place of the first text if it has the same text, and reads
// it otherwise. A text that begins with that of a whole value has that value, because brackets and quotes end
// it.
func (p *parser) shared(key string, index int) any {
	c := p.next()
	if c != '"' && c != '{' && c != '[' {
		return p.value()
	}
	t := &p.twin
	at := t.find(key, index)
	if at < 0 {
		return p.within(level{})
	}
	m := &t.marks[at]
	text := t.first[m.start:m.end]
	t.level.cursor = int(m.next)
	if rest := p.data[p.pos:]; len(rest) >= len(text) && string(rest[:len(text)]) == string(text) {
		p.pos += len(text)
		return m.value
	}
	return p.within(level{cursor: at + 1, end: int(m.next)})
}

// within reads the value at pos, whose contents are expected to be like those at l.
func (p *parser) within(l level) any {
	outer := p.twin.level
	p.twin.level = l
	value := p.value()
	p.twin.level = outer
	return value
}

// find returns the mark of what stands under key or at index, or -1.
func (t *twin) find(key string, index int) int {
	at := t.level.cursor
	for range maxAhead {
		if at >= t.level.end {
			break
		}
		m := &t.marks[at]
		if m.index == int32(index) && m.key == key {
			return at
		}
		at = int(m.next)
	}
	return -1
}

// forget ends what was remembered of a pair.
func (t *twin) forget() {
	if t.mode == twinNone {
		return
	}
	clear(t.marks[:t.most])
	*t = twin{marks: t.marks[:0]}
}
