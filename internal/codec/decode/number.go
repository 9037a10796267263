package decode

import "strconv"

// safeDigits is how many decimal digits always fit an int64.
const safeDigits = 18

// number reads the number at pos: an int64 if it has neither a fraction nor an exponent and fits, and a
// float64 otherwise.
func (p *parser) number() any {
	start := p.pos
	integer, ok := p.scanNumber()
	if !ok {
		return nil
	}
	text := p.data[start:p.pos]
	if integer {
		if n, ok := parseInteger(text); ok {
			return n
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		p.fail("a number out of range")
		return nil
	}
	return f
}

// scanNumber takes a number, and says whether it is an integer.
func (p *parser) scanNumber() (integer, ok bool) {
	if p.data[p.pos] == '-' {
		p.pos++
	}
	first := p.pos
	if p.digits() == 0 || p.data[first] == '0' && p.pos > first+1 {
		p.unexpected("a number")
		return false, false
	}
	integer = true
	if p.pos < len(p.data) && p.data[p.pos] == '.' {
		p.pos++
		integer = false
		if p.digits() == 0 {
			p.unexpected("a fraction")
			return false, false
		}
	}
	if p.pos < len(p.data) && p.data[p.pos]|0x20 == 'e' {
		p.pos++
		integer = false
		if p.pos < len(p.data) && (p.data[p.pos] == '+' || p.data[p.pos] == '-') {
			p.pos++
		}
		if p.digits() == 0 {
			p.unexpected("an exponent")
			return false, false
		}
	}
	return integer, true
}

// digits takes decimal digits and returns how many there were.
func (p *parser) digits() int {
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos]-'0' <= 9 {
		p.pos++
	}
	return p.pos - start
}

func parseInteger(text []byte) (int64, bool) {
	digits := text
	if text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) > safeDigits {
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, c := range digits {
		n = n*10 + int64(c-'0')
	}
	if text[0] == '-' {
		n = -n
	}
	return n, true
}
