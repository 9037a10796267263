package jsonpath

import "strconv"

// number scans the number at i. A number too large for a float64 fails, as it does in
// sigs.k8s.io/json.
func (s *scanner) number(i int) int {
	end, problem := scanNumber(s.raw, i)
	if problem != "" {
		return s.fail(end, problem)
	}
	// Only an exponent or hundreds of digits can exceed the range.
	if raw := s.raw[i:end]; len(raw) > 300 || hasExponent(raw) {
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			return s.fail(i, "the number is out of range")
		}
	}
	return end
}

func hasExponent(raw []byte) bool {
	for _, c := range raw {
		if c|0x20 == 'e' {
			return true
		}
	}
	return false
}

// scanNumber returns the offset after the JSON number at i, or the offset of the problem and what
// it is.
func scanNumber(raw []byte, i int) (end int, problem string) {
	if i < len(raw) && raw[i] == '-' {
		i++
	}
	switch {
	case i >= len(raw) || !isDigit(raw[i]):
		return i, "expected a value"
	case raw[i] == '0':
		i++
	default:
		i = skipDigits(raw, i)
	}
	if i < len(raw) && raw[i] == '.' {
		at := i + 1
		if i = skipDigits(raw, at); i == at {
			return i, "expected digits after the point"
		}
	}
	if i < len(raw) && raw[i]|0x20 == 'e' {
		at := i + 1
		if at < len(raw) && (raw[at] == '+' || raw[at] == '-') {
			at++
		}
		if i = skipDigits(raw, at); i == at {
			return i, "expected digits in the exponent"
		}
	}
	return i, ""
}

func skipDigits(raw []byte, i int) int {
	for i < len(raw) && isDigit(raw[i]) {
		i++
	}
	return i
}
