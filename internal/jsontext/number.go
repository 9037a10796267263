package jsontext

import "strconv"

// NumberForm is the syntactic form of a number.
type NumberForm uint8

// The form is the last part that a number has: a number with an exponent can also have a fraction.
const (
	Integer NumberForm = iota
	Fraction
	Exponent
)

// maxInt64SafeDigits is a number of decimal digits that always fits an int64.
const maxInt64SafeDigits = 18

// ScanNumber reads the number at i. After a leading zero, only a point or an exponent can follow. For an
// invalid number, form is the part that lacks digits.
func ScanNumber(data []byte, i int) (end int, form NumberForm) {
	if i < len(data) && data[i] == '-' {
		i++
	}
	start := i
	if i < len(data) && data[i] == '0' {
		i++
	} else if i = skipDigits(data, i); i == start {
		return ^i, Integer
	}
	if i < len(data) && data[i] == '.' {
		form, start = Fraction, i+1
		if i = skipDigits(data, start); i == start {
			return ^i, form
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		form = Exponent
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		start = i
		if i = skipDigits(data, start); i == start {
			return ^i, form
		}
	}
	return i, form
}

func skipDigits(data []byte, i int) int {
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	return i
}

// IsFloat64 reports whether a number read by ScanNumber fits a float64, as all numbers must.
func IsFloat64(number []byte, form NumberForm) bool {
	if form != Exponent && len(number) <= 300 { // only an exponent or hundreds of digits can exceed the range
		return true
	}
	_, err := strconv.ParseFloat(string(number), 64)
	return err == nil
}

// ParseInteger returns the value of an integer that fits an int64, and false otherwise.
func ParseInteger(number []byte) (int64, bool) {
	digits := number
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	if len(digits) > maxInt64SafeDigits {
		n, err := strconv.ParseInt(string(number), 10, 64)
		return n, err == nil
	}
	var n int64
	for _, c := range digits {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if len(digits) < len(number) {
		n = -n
	}
	return n, true
}

// ParseNumber returns the value of a number as apimachinery does: an int64 if it is an integer that fits,
// otherwise a float64. ok is false if the number is out of range.
func ParseNumber(number []byte) (i int64, f float64, isInteger, ok bool) {
	if i, ok := ParseInteger(number); ok {
		return i, 0, true, true
	}
	f, err := strconv.ParseFloat(string(number), 64)
	return 0, f, false, err == nil
}
