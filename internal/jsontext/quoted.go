package jsontext

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
