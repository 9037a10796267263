package decode

// skip takes the value at pos without building it. The syntax is checked as if it were built.
func (p *parser) skip() {
	switch c := p.next(); c {
	case '"':
		p.quoted()
	case '{':
		p.skipMembers()
	case '[':
		p.skipElements()
	case 't':
		p.literal("true")
	case 'f':
		p.literal("false")
	case 'n':
		p.literal("null")
	default:
		if c == '-' || c-'0' <= 9 {
			p.scanNumber()
			return
		}
		p.unexpected("a value")
	}
}

func (p *parser) skipMembers() {
	p.enter()
	if p.next() == '}' {
		p.pos++
		p.depth--
		return
	}
	for more := true; more && p.failure == ""; more = p.more('}') {
		if p.next() != '"' {
			p.unexpected("a key")
			return
		}
		p.quoted()
		p.colon()
		p.skip()
	}
	p.depth--
}

func (p *parser) skipElements() {
	p.enter()
	if p.next() == ']' {
		p.pos++
		p.depth--
		return
	}
	for more := true; more && p.failure == ""; more = p.more(']') {
		p.skip()
	}
	p.depth--
}
