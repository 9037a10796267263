package jsontext

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
